import Dispatch
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastIssuer

typealias TestIssuer<Key: SigningKey & Sendable> = Issuer<StoreInMemory, Key>

@Suite struct IssuerTests {
  let parties: Parties
  let store: StoreInMemory

  init() throws {
    parties = try Parties()
    let device = try parties.device()
    store = StoreInMemory(
      StoreInMemory.State(
        images: [parties.image().digest: (parties.image().subject, parties.image().version)],
        devices: [device.deviceID: .registered(device.publicPoint)], keys: parties.releaseKeys))
  }

  private func issuer() throws -> TestIssuer<MemorySigningKey> {
    TestIssuer(
      name: "issuer.example", key: try MemorySigningKey(scalar: parties.example.secret("keys.issuer_private")),
      store: store)
  }

  private func issue(
    _ evidence: [UInt8]? = nil, for device: DeviceDescriptor? = nil, options: IssuanceOptions = IssuanceOptions(),
    at seconds: UInt64? = nil
  ) throws -> IssuedToken {
    var random = SystemRandom()
    return try issuer().issue(
      evidence: try evidence ?? parties.evidence(), for: try device ?? parties.device(), options: options,
      clock: TestClock(seconds: seconds ?? parties.now), random: &random)
  }

  private func expect(_ error: IssuerError<StoreFailure>, _ body: () throws -> IssuedToken) {
    #expect(throws: error) { _ = try body() }
  }

  @Test(arguments: [TokenEncoding.cose, .jose])
  func `a device opens the token, and finds the measurements that the app proves`(encoding: TokenEncoding) throws {
    var options = IssuanceOptions()
    options.encoding = encoding
    (options.commands, options.maximumUses, options.user) = (["unlock"], 5, "ada")
    options.validitySeconds = 60
    let token = try issue(options: options)
    let opened = try MeasurementTokenWriterTests().open(token.bytes, options.format)
    #expect(opened.issuerKeyID == parties.example.fixed("keys.issuer_kid"))
    #expect(opened.claims.contains(parties.example.text("measurement.im")))
    #expect(opened.claims.contains(parties.example.text("measurement.dm")))
    #expect(opened.claims.contains(hex(Array("ada".utf8))) && opened.claims.contains(hex(Array("unlock".utf8))))
    #expect(token.expires == parties.now + 60)
    #expect((options.commands, options.maximumUses, options.user) == (["unlock"], 5, "ada"))
    #expect(options.encoding == encoding)
  }

  @Test func `what is issued is recorded first, with the token's id and no secret`() throws {
    store.change { state in state.generations = [:] }
    let device = try parties.device()
    store.change { $0.generations[device.deviceID] = 7 }
    let token = try issue()
    #expect(store.calls == [.approval, .standing, .generation, .insert])
    let record = try #require(store.records.first)
    #expect((record.tokenID, record.device, record.expires) == (token.tokenID, device.deviceID, token.expires))
    #expect((record.subject, record.version) == (parties.image().subject, parties.image().version))
    #expect((record.generation, record.issuedAt) == (7, parties.now))
    #expect(token.claims[.generation] == .number(7) && token.expires == parties.now + 90 * 86400)
    let secrets = ["measurement.im", "measurement.dm"].map { parties.example.text($0) }
    #expect(!secrets.contains(hex(record.baseline.bytes)))
  }

  @Test(arguments: StoreCall.allCases)
  func `when the store fails, nothing is issued, and its error comes back`(call: StoreCall) throws {
    store.change { $0.failing = [call] }
    expect(.store(StoreFailure(call: call))) { try issue() }
    #expect(store.records.isEmpty)
    store.change { $0.failing = [] }
    _ = try issue()
  }

  @Test func `a baseline gets one token, also for another device and after the key failed`() throws {
    _ = try issue()
    expect(.refused(.app(.repeated))) { try issue() }
    let other = try parties.device(id: TypedBytes(filledWith: 9))
    store.change { $0.devices[other.deviceID] = .registered(other.publicPoint) }
    expect(.refused(.app(.repeated))) { try issue(for: other) }
    #expect(store.records.count == 1)
  }

  @Test func `a key that does not sign issues nothing, and the baseline is used`() throws {
    let key = UnreachableKey(publicPoint: try MemorySigningKey().publicPoint)
    let issuer = TestIssuer(name: "issuer.example", key: key, store: store)
    var random = SystemRandom()
    #expect(throws: IssuerError<StoreFailure>.token(.cryptography)) {
      _ = try issuer.issue(
        evidence: parties.evidence(), for: parties.device(), clock: TestClock(seconds: parties.now), random: &random)
    }
    expect(.refused(.app(.repeated))) { try issue() }
  }

  @Test func `of many calls at once with one baseline, exactly one gets a token`() throws {
    let (issuer, parties) = (try issuer(), parties)
    let (evidence, device) = (try parties.evidence(), try parties.device())
    let outcomes = Mutex<[Result<Int, IssuerError<StoreFailure>>]>([])
    DispatchQueue.concurrentPerform(iterations: 24) { _ in
      var random = SystemRandom()
      let outcome: Result<Int, IssuerError<StoreFailure>>
      do throws(IssuerError<StoreFailure>) {
        outcome = .success(
          try issuer.issue(
            evidence: evidence, for: device, clock: TestClock(seconds: parties.now), random: &random
          ).bytes.count)
      } catch { outcome = .failure(error) }
      outcomes.withLock { $0.append(outcome) }
    }
    let all = outcomes.withLock { $0 }
    #expect(all.count == 24)
    #expect(all.filter { $0 == .failure(.refused(.app(.repeated))) }.count == 23)
    #expect(store.records.count == 1)
  }

  @Test func `a device that is unknown, blocked or has another key gets nothing`() throws {
    let device = try parties.device()
    for (standing, refusal) in [
      (DeviceStanding.unknown, IssuerRefusal.unknownDevice), (.blocked, .blockedDevice),
      (.registered(try MemorySigningKey().publicPoint), .anotherKey),
    ] {
      store.change { $0.devices[device.deviceID] = standing }
      expect(.refused(refusal)) { try issue() }
    }
    #expect(store.records.isEmpty)
  }

  @Test func `an app that is not approved, old, or of another release gets nothing`() throws {
    expect(.refused(.app(.notFresh))) { try issue(at: parties.now + 301) }
    expect(.refused(.app(.subject(claimed: "other", approved: parties.image().subject)))) {
      try issue(parties.evidence(subject: "other"))
    }
    let approved = (
      [parties.image().digest: (parties.image().subject, parties.image().version)], parties.releaseKeys
    )
    // The same evidence key, and another measurement proof key.
    let others = [UInt8](repeating: 3, count: 16) + Parties.evidenceKey
    store.change { $0.keys = others }
    expect(.refused(.app(.anotherRelease))) { try issue() }
    store.change { $0.images = [:] }
    expect(.refused(.app(.unknownImage))) { try issue() }
    for missing in ["app.image", "app.debug"] {
      let old = try parties.configuration()
      let app = try parties.components("app").filter { $0.id.description != missing }
      let configuration = try MeasurementConfiguration(
        salt: old.salt, mpkID: old.mpkID, appIDs: app.map { $0.id }, deviceIDs: old.deviceIDs, created: old.created)
      store.change { state in (state.images, state.keys) = approved }
      expect(.refused(.app(.incomplete))) { try issue(parties.evidence(configuration: configuration, app: app)) }
    }
    #expect(store.records.isEmpty)
  }

  @Test func `evidence that is damaged, forged, too long or no evidence gets nothing`() throws {
    let evidence = try parties.evidence()
    let forged = try parties.evidence(authenticatedWith: [UInt8](repeating: 1, count: 32))
    expect(.refused(.app(.notAuthentic))) { try issue(forged) }
    for bytes in [[], [0x80], Array(evidence.dropLast()), evidence + [0], [UInt8](repeating: 0x80, count: 65_537)] {
      expect(.malformed) { try issue(bytes) }
    }
    for index in stride(from: 0, to: evidence.count, by: 7) {
      var damaged = evidence
      damaged[index] ^= 1
      #expect(throws: IssuerError<StoreFailure>.self) { _ = try issue(damaged) }
    }
    #expect(store.records.isEmpty)
  }

  @Test func `a property that is refused is named, and the list is the caller's`() throws {
    var parties = parties
    parties.properties = ["debugger"]
    let evidence = try parties.evidence()
    expect(.refused(.app(.property("debugger")))) { try issue(evidence) }
    var issuer = try issuer()
    issuer.refusedProperties = []
    var random = SystemRandom()
    _ = try issuer.issue(
      evidence: evidence, for: parties.device(), clock: TestClock(seconds: parties.now), random: &random)
  }

  @Test func `options and generations out of range are refused before anything is recorded`() throws {
    let wrong: [(inout IssuanceOptions) -> Void] = [
      { $0.commands = Array(repeating: "unlock", count: 17) }, { $0.commands = [""] },
      { $0.commands = [String(repeating: "c", count: 33)] }, { $0.user = "" },
      { $0.user = String(repeating: "u", count: 33) }, { $0.maximumUses = maximumInteger + 1 },
      { $0.validitySeconds = 0 },
    ]
    for change in wrong {
      var options = IssuanceOptions()
      change(&options)
      expect(.token(.outOfRange)) { try issue(options: options) }
    }
    let device = try parties.device()
    store.change { $0.generations[device.deviceID] = maximumInteger + 1 }
    expect(.token(.outOfRange)) { try issue() }
    #expect(store.records.isEmpty)
  }

  @Test func `without a clock or random bytes nothing is issued`() throws {
    var random = SystemRandom()
    let (issuer, evidence, device) = (try issuer(), try parties.evidence(), try parties.device())
    #expect(throws: IssuerError<StoreFailure>.noClock) {
      _ = try issuer.issue(evidence: evidence, for: device, clock: TestClock(seconds: nil), random: &random)
    }
    var dry = ListedRandom(bytes: [])
    #expect(throws: IssuerError<StoreFailure>.token(.cryptography)) {
      _ = try issuer.issue(evidence: evidence, for: device, clock: TestClock(seconds: parties.now), random: &dry)
    }
    #expect(store.records.isEmpty)
  }
}
