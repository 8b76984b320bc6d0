import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

/// Bulletins in a ledger, which keeps all of one or nothing, and drops nothing too early.
@Suite struct BulletinsTests {
  private let token = TokenID(filledWith: 0x77)

  /// Takes the bulletin after the last one of the device's issuer.
  @discardableResult
  private func take(
    _ device: TestDevice, after seconds: UInt64 = 0, by issuer: TestIssuer? = nil,
    _ change: (inout TestBulletin) -> Void
  ) throws -> BulletinResult {
    let issuer = issuer ?? device.issuer
    var bulletin = TestBulletin(for: device.folder.descriptor.deviceID)
    bulletin.predecessor = try number(device, of: issuer)
    (bulletin.number, bulletin.issuedAt) = (
      max(1000 * (testTime + seconds), bulletin.predecessor + 1), testTime + seconds
    )
    change(&bulletin)
    var policy = device.policy
    policy.introducers = [try device.issuer.keyID()]
    return try device.take(try issuer.bulletin(bulletin), under: policy)
  }

  private func number(_ device: TestDevice, of issuer: TestIssuer) throws -> UInt64 {
    let audience = AudienceID(device.folder.descriptor.deviceID.bytes)!
    return try list(device, of: issuer)?.number(for: audience) ?? 0
  }

  private func list(_ device: TestDevice, of issuer: TestIssuer) throws -> BulletinList? {
    let store = SessionStore(ledger: device.ledger, memory: device.memory, clock: device.clock)
    return try store.bulletins(of: issuer.keyID())
  }

  private func revokedCount(_ device: TestDevice) throws -> UInt64? {
    try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.database.oneUnsigned("SELECT count(*) FROM revoked")
    }
  }

  private func tokens(_ range: ClosedRange<UInt8>, until seconds: UInt64) -> [(TokenID, until: UInt64)] {
    range.map { (TokenID(filledWith: $0), until: testTime + seconds) }
  }

  @Test func `a bulletin that was issued more than a day ahead of the clock is refused, and changes nothing`() throws {
    let device = try TestDevice()
    device.clock.seconds = testTime
    let before = try DeviceContents(device)
    #expect(try take(device, after: 86_401) { $0.generation = 9 } == .refused)
    #expect(try DeviceContents(device) == before)
    #expect(try take(device, after: 86_400) { $0.generation = 9 } == .taken)
  }

  @Test func `a full list takes nothing of a bulletin, which a generation then replaces`() throws {
    let device = try TestDevice(limits: LedgerLimits(revocationCount: 3))
    #expect(try take(device) { $0.revoked = tokens(1...2, until: 100) } == .taken)
    let before = try DeviceContents(device)
    let result = try take(device, after: 50) {
      $0.revoked = tokens(3...4, until: 100)
      ($0.generation, $0.versions) = (9, [("app.test", 9, 0, 0)])
    }
    #expect(result == .full)
    #expect(try DeviceContents(device) == before)
    #expect(try device.connect().round(try device.prover()).status == .accepted)
    // Those that it has already need no room.
    #expect(try take(device, after: 51) { $0.revoked = tokens(1...3, until: 100) } == .taken)
    #expect(try take(device, after: 52) { $0.revoked = tokens(4...4, until: 100) } == .full)
    #expect(try take(device, after: 52) { $0.generation = 9 } == .taken)
    #expect(try device.connect().round(try device.prover()).status == .tokenRevoked)
    #expect(try revokedCount(device) == 3)
  }

  @Test func `a revoked token is dropped once the clock floor has reached its end, and not by the real clock`() throws {
    let device = try TestDevice(limits: LedgerLimits(revocationCount: 2))
    #expect(try take(device) { $0.revoked = tokens(1...2, until: 100) } == .taken)
    device.clock.seconds = testTime + 1000
    #expect(try take(device, after: 99) { $0.revoked = tokens(3...3, until: 200) } == .full)
    #expect(try revokedCount(device) == 2)
    #expect(try take(device, after: 100) { $0.revoked = tokens(3...3, until: 200) } == .taken)
    #expect(try revokedCount(device) == 1)
    // Rounds raise the floor as well. The next bulletin drops what has ended.
    #expect(try device.connect().round(try device.prover { $0.issuedAt = testTime + 200 }).status == .accepted)
    #expect(try take(device, after: 150) { $0.revoked = tokens(4...4, until: 300) } == .taken)
    #expect(try revokedCount(device) == 1)
  }

  @Test func `a token that has expired by the floor is not kept, and of two times the later one counts`() throws {
    let device = try TestDevice()
    try take(device) { $0.revoked = tokens(1...1, until: 100) }
    try take(device, after: 50) { $0.revoked = tokens(1...1, until: 60) + tokens(2...2, until: 50) }
    #expect(try revokedCount(device) == 1)
    try take(device, after: 60) { _ in }
    try take(device, after: 99) { $0.revoked = tokens(3...3, until: 300) }
    #expect(try revokedCount(device) == 2)
  }

  @Test func `a numbered round tells the state of the list, after each bulletin, and a command that failed does not`()
    throws
  {
    let device = try TestDevice()
    let (connection, prover) = (try device.connect(), try device.prover())
    var cryptography = OpenSSLCryptography()
    var states: Set<BulletinState> = []
    for number in 1...3 as ClosedRange<UInt64> {
      let expected = try list(device, of: device.issuer)?.state(using: &cryptography)
      for told in [2 * number, 2 * number + 1] {
        #expect(try connection.round(prover, number: told).notice?.bulletinState == expected)
      }
      states.insert(try #require(expected))
      #expect(try take(device, after: number) { _ in } == .taken)
    }
    #expect(states.count == 3)
    #expect(try connection.round(prover).notice?.bulletinState == nil)
    // What cannot be replaced: the lock cannot keep its state.
    let path = DeviceFile.actuator.path(in: device.folder.path)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let failed = try connection.round(prover, "lock", number: 9)
    #expect(failed.status == .internal && failed.notice?.bulletinState == nil)
  }

  @Test func `a bulletin that is sealed to the device removes a user, and no other`() throws {
    let device = try TestDevice()
    for user in [ann, bob] { try device.add(user) }
    var bulletin = TestBulletin(for: device.folder.descriptor.deviceID)
    bulletin.users = [("ann", until: nil)]
    let sealed = try device.issuer.bulletin(bulletin, sealedTo: device.folder.descriptor.publicKey.point)
    #expect(try device.take(sealed) == .taken)
    #expect(try device.ledger.users().map(\.name) == [bob])
    #expect(try device.lastEvents(1) == [.userRemoved(ann)])
  }

  @Test func `everything of a bulletin survives a restart, in one entry of the audit log for each thing that it did`()
    throws
  {
    let device = try TestDevice()
    device.policy.limits = TokenLimits()
    try take(device) {
      $0.revoked = [(token, until: testTime + 1000)]
      ($0.generation, $0.versions) = (4, [("app.test", 2, 0, 0)])
    }
    let before = try DeviceContents(device)
    try device.reopenLedger()
    #expect(try DeviceContents(device) == before)
    let audience = AudienceID(device.folder.descriptor.deviceID.bytes)!
    let issuer = try device.issuer.keyID()
    #expect(
      before.auditEvents.suffix(2) == [
        .bulletinTaken(issuer, audience, number: 1000 * testTime), .generationFloorMoved(issuer, from: 0, to: 4),
      ])
    func status(_ id: UInt8, _ generation: UInt64, _ version: UInt64) throws -> Status {
      let prover = try device.prover {
        ($0.tokenID, $0.generation, $0.version) = (TokenID(filledWith: id), generation, (version, 0, 0))
      }
      return try device.connect().round(prover).status
    }
    #expect(try status(0x77, 4, 2) == .tokenRevoked)
    #expect(try status(1, 3, 2) == .tokenRevoked)
    #expect(try status(1, 4, 1) == .versionTooOld)
    #expect(try status(1, 4, 2) == .accepted)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a bulletin that cannot be recorded changes nothing`() throws {
    let device = try TestDevice()
    let before = try DeviceContents(device)
    let everything = { (bulletin: inout TestBulletin) in
      bulletin.revoked = [(token, until: testTime + 1000)]
      (bulletin.generation, bulletin.versions) = (4, [("app.test", 2, 0, 0)])
      bulletin.ended = [KeyID(filledWith: 1)]
    }
    try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON minimum_versions BEGIN SELECT raise(ABORT, ''); END")
    #expect(throws: DeviceFault.store) { try take(device, everything) }
    #expect(try DeviceContents(device) == before)
    try device.tamper("DROP TRIGGER fault")
    try device.tamper("CREATE TRIGGER fault BEFORE UPDATE ON state BEGIN SELECT raise(ABORT, ''); END")
    #expect(throws: DeviceFault.store) { try take(device, everything) }
    #expect(try DeviceContents(device) == before)
    try device.tamper("DROP TRIGGER fault")
    #expect(try take(device, everything) == .taken)
  }

  @Test func `256 minimum versions of a key are kept, and not one more`() throws {
    let device = try TestDevice()
    let subjects = (0..<272).map { "app " + String(1000 + $0) }
    for part in stride(from: 0, to: 256, by: 16) {
      #expect(try take(device) { $0.versions = subjects[part..<part + 16].map { ($0, 1, 0, 0) } } == .taken)
    }
    #expect(try take(device) { $0.versions = [(subjects[0], 2, 0, 0), (subjects[256], 1, 0, 0)] } == .full)
    #expect(try take(device) { $0.versions = [(subjects[0], 2, 0, 0)] } == .taken)
    let other = try TestIssuer()
    try device.ledger.trust(other.trustedKey(), realClock: testTime)
    #expect(try take(device, by: other) { $0.versions = [(subjects[0], 1, 0, 0)] } == .taken)
  }

  @Test func `a minimum version only rises, and each bulletin that raises it counts`() throws {
    let device = try TestDevice()
    device.policy.limits = TokenLimits()
    let steps: [(told: (UInt64, UInt64, UInt64), least: (UInt64, UInt64, UInt64))] = [
      ((2, 1, 0), (2, 1, 0)), ((2, 0, 9), (2, 1, 0)), ((1, 9, 9), (2, 1, 0)), ((2, 1, 1), (2, 1, 1)),
      ((2, 2, 0), (2, 2, 0)), ((3, 0, 0), (3, 0, 0)),
    ]
    for (told, least) in steps {
      #expect(try take(device) { $0.versions = [("app.test", told.0, told.1, told.2)] } == .taken)
      let kept: [[UInt64]] = try device.ledger.read { (tables) throws(DatabaseError) in
        try tables.database.all("SELECT major, minor, patch FROM minimum_versions") { (row) throws(DatabaseError) in
          [try row.unsigned(0), try row.unsigned(1), try row.unsigned(2)]
        }
      }
      #expect(kept == [[least.0, least.1, least.2]])
      #expect(try device.connect().round(device.prover { $0.version = least }).status == .accepted)
    }
    #expect(try device.connect().round(device.prover { $0.version = (2, 9, 9) }).status == .versionTooOld)
  }

  @Test func `an introduced key takes a place of an issuer, and one that ended leaves it`() throws {
    let device = try TestDevice(limits: LedgerLimits(issuerCount: 2))
    let (one, two) = (try TestIssuer(), try TestIssuer())
    func introduce(_ issuer: TestIssuer, after seconds: UInt64) throws -> BulletinResult {
      try take(device, after: seconds) {
        $0.introduced = [IntroducedKey(point: issuer.point, from: testTime, until: testTime + 1000)]
      }
    }
    #expect(try introduce(one, after: 0) == .taken)
    #expect(try introduce(two, after: 1) == .full)
    #expect(try device.ledger.issuers().count == 2)
    #expect(try device.connect().round(try device.prover(from: one)).status == .accepted)
    #expect(try take(device, after: 2) { $0.ended = [try! one.keyID()] } == .taken)
    #expect(try device.lastEvents(1) == [.issuerRemoved(one.keyID())])
    #expect(try device.connect().round(try device.prover(from: one)).status == .tokenInvalid)
    #expect(try introduce(two, after: 3) == .taken)
    #expect(try introduce(one, after: 4) == .taken)
    #expect(try device.connect().round(try device.prover(from: one)).status == .tokenInvalid)
    // The owner may trust a key again that a bulletin has ended.
    try device.ledger.removeTrust(try two.keyID(), realClock: testTime)
    #expect(try device.ledger.trust(one.trustedKey(), realClock: testTime))
    #expect(try device.connect().round(try device.prover(from: one)).status == .accepted)
  }

  @Test func `a key that the owner trusts after it was introduced is the owner's, in the times that it has`() throws {
    let device = try TestDevice()
    let other = try TestIssuer()
    try take(device) {
      $0.introduced = [IntroducedKey(point: other.point, from: testTime, until: testTime + 1000)]
    }
    #expect(try device.ledger.trust(other.trustedKey(), realClock: testTime))
    #expect(try !device.ledger.trust(other.trustedKey(), realClock: testTime))
    #expect(try take(device, after: 1) { $0.ended = [try! other.keyID()] } == .taken)
    #expect(try device.ledger.issuers().last { $0.keyID == (try? other.keyID()) }?.terms.until == testTime + 1000)
    #expect(try device.connect().round(try device.prover(from: other)).status == .accepted)
    // Its own bulletin ends it all the same.
    #expect(try take(device, by: other) { $0.ended = [try! other.keyID()] } == .taken)
    #expect(try device.connect().round(try device.prover(from: other)).status == .tokenInvalid)
  }

  @Test func `a key that is no longer trusted has no list and is not heard, and keeps its numbers`() throws {
    let device = try TestDevice()
    let issuer = try device.issuer.keyID()
    try take(device) { _ in }
    let number = try number(device, of: device.issuer)
    #expect(number == 1000 * testTime)
    try device.ledger.removeTrust(issuer, realClock: testTime)
    #expect(try list(device, of: device.issuer) == nil)
    #expect(try take(device) { $0.number = number + 5 } == .refused)
    try device.ledger.trust(device.issuer.trustedKey(), realClock: testTime)
    #expect(try self.number(device, of: device.issuer) == number)
    try device.ledger.trust(
      device.issuer.trustedKey(), terms: TrustTerms(until: testTime + 10), realClock: testTime)
    device.clock.seconds = testTime + 10
    #expect(try list(device, of: device.issuer) == nil)
  }

  @Test func `the first bulletin of a key may have the number 1, and it is then known`() throws {
    let device = try TestDevice()
    #expect(try number(device, of: device.issuer) == 0)
    #expect(try take(device) { ($0.number, $0.predecessor, $0.issuedAt) = (1, 0, 0) } == .taken)
    #expect(try take(device) { ($0.number, $0.predecessor, $0.issuedAt) = (1, 0, 0) } == .known)
    #expect(try number(device, of: device.issuer) == 1)
  }

  @Test func `a bulletin whose key is no longer trusted when the ledger has its turn is not heard`() throws {
    let device = try TestDevice()
    let issuer = try device.issuer.keyID()
    try device.ledger.removeTrust(issuer, realClock: testTime)
    try device.ledger.trust(
      device.issuer.trustedKey(), terms: TrustTerms(until: testTime + 10), realClock: testTime)
    let bytes = try device.issuer.bulletin(TestBulletin(for: device.folder.descriptor.deviceID))
    var key = try device.folder.secrets().key()
    var cryptography = OpenSSLCryptography()
    // The signature is checked by the clock, and the ledger is asked with a later time.
    for (seconds, result) in [(10, .refused), (9, .taken)] as [(UInt64, BulletinResult)] {
      var store = SessionStore(ledger: device.ledger, memory: device.memory, clock: device.clock)
      var allowance = MailAllowance.owner
      let delivery = try takeBulletin(
        bytes.span, to: device.folder.descriptor.deviceID, key: &key, keyID: device.folder.descriptor.keyID,
        store: &store, policy: device.policy, realClock: testTime + seconds, allowance: &allowance,
        using: &cryptography)
      #expect(delivery.result == result)
    }
  }

  @Test func `after the owner moved the floor back, tokens of a key with bulletins are revoked if they ended by it`()
    throws
  {
    let device = try TestDevice()
    try take(device) { $0.revoked = [(token, until: testTime + 100)] }
    try take(device, after: 100) { $0.revoked = tokens(9...9, until: 500) }
    #expect(try revokedCount(device) == 1)
    try device.ledger.moveClockFloor(to: testTime, realClock: nil)
    for (id, seconds, status) in [(0x77, 100, .tokenRevoked), (1, 100, .tokenRevoked), (0x77, 101, .accepted)]
      as [(UInt8, UInt64, Status)]
    {
      let prover = try device.prover { ($0.tokenID, $0.expires) = (TokenID(filledWith: id), testTime + seconds) }
      #expect(try device.connect().round(prover).status == status)
    }
  }

  @Test func `a device that was reset has no bulletins`() throws {
    let device = try TestDevice()
    try take(device) { ($0.revoked, $0.versions) = ([(token, until: testTime + 1000)], [("app.test", 2, 0, 0)]) }
    var random = TestRandom(state: 2)
    _ = try DeviceFolder.reset(at: device.folder.path, random: &random, clock: device.clock)
    let contents = try DeviceContents(
      TestDevice(opening: device.folder.path, in: device.place, issuer: device.issuer))
    for table in ["bulletins", "revoked", "minimum_versions", "ended_keys"] { #expect(contents.tables[table] == []) }
  }

  @Test func `two processes take each bulletin once`() throws {
    let device = try TestDevice()
    let other = try TestDevice(opening: device.folder.path, in: device.place, issuer: device.issuer)
    let bulletin = try device.issuer.bulletin(TestBulletin(for: device.folder.descriptor.deviceID))
    #expect(try [device.take(bulletin), other.take(bulletin), device.take(bulletin)] == [.taken, .known, .known])
  }
}
