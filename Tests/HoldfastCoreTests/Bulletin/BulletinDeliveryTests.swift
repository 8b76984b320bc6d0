import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The results of a delivery, in the order of docs/couriers.md, and the checks of signatures that they cost.
@Suite struct BulletinDeliveryTests {
  private let issuer: TestIssuer
  private let store: MemoryStore
  private let policy = TestPolicy()
  private let device = DeviceID(filledWith: 7)
  private let group = AudienceID(filledWith: 8)
  private let scalar = [UInt8](repeating: 5, count: 32)

  init() throws {
    issuer = try TestIssuer()
    store = try MemoryStore(trusting: issuer.point)
    store.floor = testTime
    try has(number: 0)
  }

  /// Gives the device a list in which its own number is this one.
  private func has(number: UInt64) throws {
    store.bulletins[try issuer.keyID()] = BulletinList([
      BulletinList.Row(audience: AudienceID(device.bytes)!, number: number),
      BulletinList.Row(audience: group, number: 0),
    ])
  }

  private var bulletin: TestBulletin { TestBulletin(for: device) }

  private func devicePoint() throws -> P256Point { try P256PrivateKey(scalar: secret(scalar)).publicPoint }

  /// Delivers a bulletin with these checks left. Returns what became of it, and whether a check is left.
  private func deliver(
    _ bytes: [UInt8], hasCheck: Bool = true, realClock: UInt64? = testTime
  ) throws -> (BulletinDelivery, hasCheck: Bool) {
    var key = try P256PrivateKey(scalar: secret(scalar))
    var cryptography = OpenSSLCryptography()
    let keyID = try keyID(of: key.publicPoint, using: &cryptography)
    var allowance = MailAllowance.owner
    if !hasCheck { _ = allowance.useCheck() }
    var store = store
    let delivery = try takeBulletin(
      bytes.span, to: device, key: &key, keyID: keyID, store: &store, policy: policy, realClock: realClock,
      allowance: &allowance, using: &cryptography)
    return (delivery, allowance.useCheck())
  }

  private func forged(_ bytes: [UInt8]) -> [UInt8] { bytes.dropLast() + [bytes[bytes.count - 1] ^ 1] }

  private func expect(
    _ result: BulletinResult, _ bulletin: TestBulletin, by other: TestIssuer? = nil, costs: Bool,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let bytes = try (other ?? issuer).bulletin(bulletin)
    let delivery = try deliver(bytes)
    #expect(delivery == (.judged(result), hasCheck: !costs), sourceLocation: sourceLocation)
    // Whatever comes before the check comes with a wrong signature, and without a check, as well.
    guard !costs else { return }
    #expect(try deliver(forged(bytes)) == (.judged(result), hasCheck: true), sourceLocation: sourceLocation)
    #expect(try deliver(bytes, hasCheck: false) == (.judged(result), hasCheck: false), sourceLocation: sourceLocation)
  }

  @Test func `of several reasons the first one counts, and only a check of the signature costs`() throws {
    try has(number: bulletin.number)
    var all = bulletin
    (all.audience, all.number, all.predecessor) = (AudienceID(filledWith: 9), bulletin.number + 2, bulletin.number + 1)
    let stranger = try TestIssuer()
    try expect(.refused, all, by: stranger, costs: false)
    try expect(.notAddressed, all, costs: false)
    all.audience = bulletin.audience
    try expect(.missed, all, costs: false)
    all.number = bulletin.number
    all.predecessor = bulletin.number - 1
    try expect(.known, all, costs: false)
    all.number = bulletin.number - 1000
    (all.predecessor, all.issuedAt) = (0, testTime - 1)
    try expect(.known, all, costs: false)
    #expect(store.judged.isEmpty)
    all.number = bulletin.number + 1
    all.predecessor = bulletin.number
    try expect(.taken, all, costs: true)
    #expect(store.judged.count == 1)
  }

  @Test func `without a check that is left, a bulletin that would need it is not judged`() throws {
    let signed = try issuer.bulletin(bulletin)
    for bytes in [signed, forged(signed)] {
      #expect(try deliver(bytes, hasCheck: false) == (.judged(.busy), hasCheck: false))
    }
    #expect(store.judged.isEmpty)
  }

  @Test func `a forged bulletin costs the check and is told apart`() throws {
    let signed = try issuer.bulletin(bulletin)
    let delivery = try deliver(forged(signed))
    #expect(delivery == (.forged, hasCheck: false))
    #expect(delivery.0.result == .refused)
    let sealed = try deliver(try sealed(forged(signed)))
    #expect(sealed == (.forged, hasCheck: false))
    #expect(store.judged.isEmpty)
  }

  private func sealed(_ signed: [UInt8]) throws -> [UInt8] {
    // Another issuer's key does for the layer around it.
    try TestIssuer().token(
      TestClaims(for: device), to: devicePoint(), flaws: flaws { $0 = signed })
  }

  private func flaws(_ change: @escaping (inout [UInt8]) -> Void) -> TokenFlaws {
    var flaws = TokenFlaws()
    flaws.changePlaintext = change
    return flaws
  }

  @Test func `a sealed bulletin costs the check in any case`() throws {
    try has(number: bulletin.number)
    let point = try devicePoint()
    var other = bulletin
    for (number, audience, result) in [
      (bulletin.number, bulletin.audience, BulletinResult.known), (bulletin.number + 1, bulletin.audience, .taken),
      (bulletin.number, AudienceID(filledWith: 9), .notAddressed), (bulletin.number, group, .taken),
    ] {
      (other.number, other.audience) = (number, audience)
      let bytes = try issuer.bulletin(other, sealedTo: point)
      #expect(try deliver(bytes) == (.judged(result), hasCheck: false))
      #expect(try deliver(bytes, hasCheck: false) == (.judged(.busy), hasCheck: false))
    }
    let foreign = try issuer.bulletin(bulletin, sealedTo: try TestIssuer().point)
    #expect(try deliver(foreign) == (.judged(.refused), hasCheck: false))
  }

  @Test func `users are named only under a seal, to the device itself`() throws {
    let point = try devicePoint()
    var named = bulletin
    named.users = [("alice", until: nil)]
    #expect(try deliver(try issuer.bulletin(named, sealedTo: point)).0 == .judged(.taken))
    #expect(try deliver(try issuer.bulletin(named)) == (.judged(.refused), hasCheck: true))
    named.audience = group
    #expect(try deliver(try issuer.bulletin(named, sealedTo: point)).0 == .judged(.refused))
    #expect(store.judged.count == 1)
  }

  @Test func `a store is told how late a bulletin may be, and whether its key may introduce others`() throws {
    policy.maximumIssueAdvanceSeconds = 500
    func terms(realClock: UInt64?) throws -> BulletinTerms {
      #expect(try deliver(try issuer.bulletin(bulletin), realClock: realClock).0 == .judged(.taken))
      return try #require(store.judged.last)
    }
    #expect(try terms(realClock: nil).latestIssue == testTime + 500)
    #expect(try terms(realClock: testTime - 86_400 + 10).latestIssue == testTime + 10)
    // A clock that is further behind has lost the time.
    #expect(try terms(realClock: 0).latestIssue == testTime)
    #expect(try terms(realClock: testTime).realClock == testTime)
    #expect(try !terms(realClock: nil).mayIntroduce)
    policy.introducers = [try issuer.keyID()]
    #expect(try terms(realClock: nil).mayIntroduce)
  }

  @Test func `a MAC key, and a store that keeps no bulletins, take none`() throws {
    let macKey = [UInt8](repeating: 3, count: 32)
    store.macKeys[try TestIssuer(sharing: macKey).keyID()] = macKey
    let authenticated = try TestIssuer(sharing: macKey).bulletin(bulletin)
    #expect(try deliver(authenticated) == (.judged(.refused), hasCheck: true))
    store.bulletins = [:]
    #expect(try deliver(try issuer.bulletin(bulletin)) == (.judged(.notAddressed), hasCheck: true))
  }

  @Test func `a store that fails is no result`() throws {
    let signed = try issuer.bulletin(bulletin)
    store.failsToRead = true
    #expect(throws: DeviceFault.store) { try deliver(signed) }
    store.failsToRead = false
    store.failsToWrite = true
    #expect(throws: DeviceFault.store) { try deliver(signed) }
  }
}
