import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// The owner's changes of an image: the same as of a folder, as far as flash has room.
@Suite struct FirmwareImageOwnerTests {
  /// The outcome of ``life(of:)``.
  private struct Outcome: Equatable {
    var users: [LedgerUser]
    var issuers: [TrustedIssuer]
    var events: [AuditEvent]
    var faults: [LedgerFault?]
    var answers: [Bool]
    var codes: [String]
    var clockFloor: UInt64
    var hasUnfinishedRun: Bool
  }

  private let issuers: [PublicKeyJWK]

  init() throws {
    issuers = try (0..<9).map { _ in PublicKeyJWK(point: try TestIssuer().point) }
  }

  private func fault(_ body: () throws -> Void) -> LedgerFault? {
    do { try body() } catch { return error as? LedgerFault }
    return nil
  }

  private func life<Kept: OwnerLedger>(of ledger: Kept) throws -> Outcome {
    let first = try issuers[0].computedKeyID()
    let firstEvent = try ledger.summary().audit.count
    var answers = [
      try ledger.trust(issuers[0], realClock: testTime), try ledger.trust(issuers[1], realClock: testTime),
    ]
    answers.append(try ledger.trust(issuers[0], realClock: testTime))
    let second = try issuers[1].computedKeyID()
    answers.append(try ledger.removeTrust(second, realClock: testTime))
    answers.append(try ledger.removeTrust(second, realClock: testTime))
    _ = try ledger.moveGenerationFloor(of: first, to: 7, realClock: testTime)
    _ = try ledger.moveClockFloor(to: testTime + 50, realClock: testTime)
    var codes = [
      try ledger.issue(bob), try ledger.issue(ann, seed: 5), try ledger.issue(ann, seed: 6),
      try ledger.issue("eve", otp: nil, seed: 7),
    ]
    try ledger.add(ann, otp: totpMethod, seal: timeSealMethod, nextPosition: 40)
    var faults = [
      fault { try ledger.add(ann, otp: hotpMethod, seal: nil) }, fault { _ = try ledger.issue(ann) },
      fault { _ = try ledger.issueUnlocking(BoundedText("nobody")) },
      fault { try ledger.add(bob, otp: hotpMethod, seal: totpMethod) },
      fault { _ = try ledger.issue(bob, otp: nil, seal: nil) },
    ]
    codes.append(try ledger.issueUnlocking(ann))
    codes.append(try ledger.issue(ann, replaces: true))
    try ledger.add(bob, otp: hotpMethod, seal: counterSealMethod, nextPosition: maximumInteger)
    try ledger.add(BoundedText("zoe"), otp: nil, seal: challengeSealMethod)
    answers.append(try ledger.removeUser(BoundedText("zoe"), realClock: testTime))
    answers.append(try ledger.removeUser(BoundedText("zoe"), realClock: testTime))
    _ = try ledger.issue(BoundedText("zoe"))
    answers.append(try ledger.removeUser(BoundedText("zoe"), realClock: testTime))
    faults.append(fault { _ = try ledger.moveClockFloor(to: maximumInteger + 1, realClock: testTime) })
    faults.append(fault { _ = try ledger.moveGenerationFloor(of: KeyID(), to: 1, realClock: testTime) })
    let summary = try ledger.summary()
    return Outcome(
      users: try ledger.users(), issuers: try ledger.issuers(),
      events: try ledger.auditEntries(after: firstEvent, limit: 100).map(\.event), faults: faults, answers: answers,
      codes: codes, clockFloor: summary.clockFloor, hasUnfinishedRun: summary.hasUnfinishedRun)
  }

  @Test func `an image and a folder do the same`() throws {
    let test = try TestImage()
    let place = try TemporaryFolder()
    var random = TestRandom(state: 1)
    let folder = try DeviceFolder.create(at: place.file("device"), random: &random, clock: TestClock())
    let expected = try life(of: folder.openLedger())
    #expect(expected.faults.count == 7 && !expected.faults.contains(nil))
    #expect(try life(of: test.image) == expected)
    #expect(try test.image.verifyAudit().firstBroken == nil)
    try test.reopen()
    #expect(try test.image.users() == expected.users)
    #expect(try test.image.issuers() == expected.issuers)
  }

  @Test func `a board has no passwords over a challenge`() throws {
    let test = try TestImage()
    #expect(throws: LedgerFault.unsupportedMethod) { try test.image.add(ann, otp: challengeSealMethod, seal: nil) }
    #expect(throws: LedgerFault.unsupportedMethod) { _ = try test.image.issue(otp: challengeSealMethod, seal: nil) }
    #expect(try test.image.users().isEmpty)
  }

  @Test func `a user's secrets are those that were given`() throws {
    let test = try TestImage()
    let long = [UInt8](repeating: 0x77, count: 64)
    try test.image.add(ann, otp: hotpMethod, seal: counterSealMethod, secret: long)
    try test.image.add(bob, otp: nil, seal: counterSealMethod, secret: [9])
    try test.reopen()
    let users = try test.image.users()
    let secrets = try test.image.look { (store, _) throws(LedgerFault) -> [[UInt8]] in
      var secrets: [[UInt8]] = []
      for user in users {
        for purpose in [CodePurpose.otp, .seal, .host] {
          let found = try store.attempt { (store) throws(DeviceFault) -> [UInt8] in
            guard let secret = try store.codeSecret(of: user.record.id, purpose) else { return [] }
            return Array(secret.bytes)
          }
          secrets.append(found)
        }
      }
      return secrets
    }
    #expect(secrets == [long, long, [], [], [9], []])
  }

  @Test func `there is room for 16 users, 16 codes and 8 issuers, and not for one more`() throws {
    let test = try TestImage(trusting: Array(issuers[..<8]))
    #expect(throws: LedgerFault.tooManyIssuers) { try test.image.trust(issuers[8], realClock: testTime) }
    let names = (0..<16).map { BoundedText<32>("the user with the number \($0)")! }
    for name in names { _ = try test.image.issue(name) }
    #expect(throws: LedgerFault.tooManyCodes) { _ = try test.image.issue(ann) }
    // One of the same user takes the place of the other, and time makes room.
    _ = try test.image.issue(names[3], seed: 9)
    for name in names {
      try test.image.add(
        name, otp: .totp(.sha512, CodeLength(10)!, periodSeconds: 86_400), seal: counterSealMethod,
        secret: [UInt8](repeating: 1, count: 64), nextPosition: maximumInteger)
    }
    #expect(throws: LedgerFault.tooManyUsers) { try test.image.add(ann, otp: hotpMethod, seal: nil) }
    #expect(throws: LedgerFault.tooManyUsers) { _ = try test.image.issue(ann) }
    for name in names { _ = try test.image.issueUnlocking(name) }
    #expect(throws: LedgerFault.tooManyCodes) { _ = try test.image.issue(names[0], replaces: true) }
    _ = try test.image.issue(names[0], replaces: true, realClock: testTime + Ledger.codeLifetimeSeconds)
    try test.reopen()
    #expect(try test.image.users().count == 16)
    #expect(try test.image.summary().userCount == 16)
  }

  @Test func `an issuer is not trusted where its generation floor would have no place`() throws {
    let test = try TestImage()
    for _ in 0..<16 {
      let issuer = PublicKeyJWK(point: try TestIssuer().point)
      let keyID = try issuer.computedKeyID()
      #expect(try test.image.trust(issuer, realClock: testTime))
      _ = try test.image.moveGenerationFloor(of: keyID, to: 3, realClock: testTime)
      #expect(try test.image.removeTrust(keyID, realClock: testTime))
    }
    #expect(throws: LedgerFault.tooManyIssuers) { try test.image.trust(issuers[0], realClock: testTime) }
  }

  @Test func `floors only rise`() throws {
    let test = try TestImage(trusting: [issuers[0]])
    let keyID = try issuers[0].computedKeyID()
    #expect(try test.image.moveGenerationFloor(of: keyID, to: 5, realClock: nil) == 0)
    #expect(throws: LedgerFault.floorOnlyRises) {
      try test.image.moveGenerationFloor(of: keyID, to: 4, realClock: nil)
    }
    #expect(throws: LedgerFault.floorOnlyRises) { try test.image.moveClockFloor(to: testTime - 1, realClock: nil) }
    let before = try test.contents()
    #expect(try test.image.moveClockFloor(to: testTime, realClock: nil) == testTime)
    #expect(try test.contents() == before)
    #expect(try test.image.issuers().map(\.generationFloor) == [5])
  }

  @Test func `the journal moves between its slots, the chain goes on, and older entries are dropped`() throws {
    let test = try TestImage()
    let slots = try test.image.change { (store, _) throws(LedgerFault) in
      var slots: Set<Int> = []
      for _ in 0..<5000 {
        try store.attempt { (store) throws(DeviceFault) in try store.note(.userRemoved(ann), realClock: nil) }
        slots.insert(store.slotUse.number)
      }
      return slots
    }
    #expect(slots == [1, 2])
    try test.reopen()
    let report = try test.image.verifyAudit()
    #expect(report.firstBroken == nil && report.firstKept > 1 && report.recorded.count == 5002)
    let entries = try test.image.auditEntries(after: 0, limit: 6000)
    #expect(entries.map(\.sequence) == Array(report.firstKept...5002))
    #expect(try test.image.auditEntries(after: 5000, limit: 1).map(\.sequence) == [5001])
  }
}

/// Used codes stay used where a user is replaced with the same secret.
@Suite struct ReplacedUsersTests {
  private func marks<Kept: OwnerLedger>(in ledger: Kept) throws -> [UInt64?] {
    func mark(_ otp: CodeMethod?, _ seal: CodeMethod?, _ secret: [UInt8], _ position: UInt64) throws -> [UInt64?] {
      try ledger.add(ann, otp: otp, seal: seal, secret: secret, nextPosition: position, replaces: true)
      let record = try ledger.users().first?.record
      return [record?.accounts[.otp]?.nextPosition, record?.accounts[.seal]?.nextPosition]
    }
    let other = [UInt8](repeating: 0x5b, count: 32)
    return try mark(hotpMethod, counterSealMethod, usersSecret, 30)
      + mark(hotpMethod, counterSealMethod, usersSecret, 0)
      + mark(.hotp(.sha256, CodeLength(8)!), counterSealMethod, usersSecret, 31)
      + mark(hotpMethod, nil, usersSecret, 5) + mark(totpMethod, nil, usersSecret, 0)
      + mark(totpMethod, nil, usersSecret, 99) + mark(totpMethod, nil, usersSecret, 1)
      + mark(totpMethod, nil, other, 1)
  }

  private let expected: [UInt64?] = [30, 30, 30, 30, 31, 31, 31, nil, 0, nil, 99, nil, 99, nil, 1, nil]

  @Test func `in a folder`() throws {
    #expect(try marks(in: TestDevice().ledger) == expected)
  }

  @Test func `in an image`() throws {
    let test = try TestImage()
    #expect(try marks(in: test.image) == expected)
  }

  @Test func `a password that was used is not accepted after its user was replaced with the same secret`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add(otp: totpMethod)
    let connection = try device.connect()
    let prover = try device.prover()
    let used = try password(testTime / 30)
    #expect(try connection.round(prover, otp: used).status == .accepted)
    try device.add(otp: totpMethod, replaces: true)
    #expect(try connection.round(prover, otp: used).status == .otpRejected)
    #expect(try connection.round(prover, otp: try password(testTime / 30 + 1)).status == .accepted)
  }
}

extension PublicKeyJWK {
  func computedKeyID() throws -> KeyID {
    var cryptography = OpenSSLCryptography()
    return try HoldfastCore.keyID(of: point, using: &cryptography)
  }
}
