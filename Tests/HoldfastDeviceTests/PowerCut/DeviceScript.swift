import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastStorage
import PowerCut
import TestSupport

import HoldfastDevice

/// A device's life, step by step: each step makes one record at most, and says what came of it.
final class DeviceScript {
  let place: TemporaryFolder
  let path: String
  let issuers: [TestIssuer]
  private(set) var device: TestDevice!
  var isOpen: Bool { device != nil }
  private let clock = TestClock()

  init(in place: TemporaryFolder, issuers: [TestIssuer]) {
    (self.place, self.issuers) = (place, issuers)
    path = place.path + "/device"
  }

  static var creationPolicy: DevicePolicy {
    var policy = DevicePolicy.forSimulatedLock
    policy.commands[BoundedText("unlock")]?.allowsCompatibility = true
    return policy
  }

  /// Makes the folder; always the same device, so that tokens can be made beforehand.
  static func make(at path: String) throws -> DeviceFolder {
    var random = TestRandom(state: 1)
    return try DeviceFolder.create(at: path, policy: creationPolicy, random: &random, clock: TestClock())
  }

  func make() throws {
    _ = try Self.make(at: path)
  }

  /// The work of a new process; the old one has ended, perhaps before there was a device.
  func open() throws {
    device = nil
    do {
      _ = try DeviceFolder.open(at: path)
    } catch DeviceFolderFault.missing, DeviceFolderFault.halfMade,
      DeviceFolderFault.folder(FileError(.notFound, at: path))
    {
      try make()
    }
    device = try TestDevice(opening: path, in: place, issuer: issuers[0])
  }

  /// Whether the audit log is longer after `body`: of totals that could not be written nobody is told.
  func records<Result>(_ body: (TestDevice) throws -> Result) throws -> Bool {
    let before = try device.ledger.summary().audit.count
    _ = try body(device)
    return try device.ledger.summary().audit.count > before
  }
}

/// One step of a script. It throws, or returns false, unless what it asked for was done.
struct DeviceStep {
  let name: String
  /// Where it moves the lock, if it does.
  let target: LockState?
  /// Whether it makes a record: a repetition, and a round that is denied and changes nothing, make none.
  let isRecorded: Bool
  let run: (DeviceScript) throws -> Bool

  init(
    _ name: String, movesLockTo target: LockState? = nil, isRecorded: Bool = true,
    _ run: @escaping (DeviceScript) throws -> Bool
  ) {
    (self.name, self.target, self.isRecorded, self.run) = (name, target, isRecorded, run)
  }
}

extension DeviceStep {
  /// A round of `command` that ends with `status`.
  static func round(
    _ name: String, _ command: String, _ status: Status = .accepted, issuer: Int = 0, flaws: Flaws = [],
    number: UInt64? = nil, token change: @escaping (inout TestClaims) -> Void = { _ in }
  ) -> DeviceStep {
    let target: LockState? = status != .accepted ? nil : ["lock": .locked, "unlock": .unlocked][command]
    return DeviceStep(name, movesLockTo: target, isRecorded: status == .accepted) { script in
      let prover = try script.device.prover(from: script.issuers[issuer], change)
      return try script.device.connect().round(prover, command, flaws: flaws, number: number).status == status
    }
  }

  /// A round whose number was accepted before: it moves nothing, whatever it is answered.
  static func repetition(_ name: String, _ command: String, _ status: Status, number: UInt64) -> DeviceStep {
    DeviceStep(name, isRecorded: false) { script in
      let before = script.device.lock.current
      let verdict = try script.device.connect().round(try script.device.prover(), command, number: number)
      return verdict.status == status && verdict.notice?.highestRequestNumber != nil
        && script.device.lock.current == before
    }
  }

  static func compatibilityRound(_ name: String, _ status: Status) -> DeviceStep {
    DeviceStep(name, movesLockTo: status == .accepted ? .unlocked : nil, isRecorded: status == .accepted) { script in
      try script.device.connect().compatibilityRound(
        try script.device.prover(), nonce: Array(repeating: 9, count: 16)) == status
    }
  }

  static func owner(_ name: String, _ run: @escaping (Ledger) throws -> Void) -> DeviceStep {
    DeviceStep(name) { script in
      try run(script.device.ledger)
      return true
    }
  }

  static var open: DeviceStep {
    DeviceStep("open") { script in
      try script.open()
      return true
    }
  }

  static var start: DeviceStep { owner("start") { _ = try $0.start(realClock: testTime) } }

  static var noteOfPolicy: DeviceStep {
    DeviceStep("note of the policy") { script in
      let ledger = script.device.ledger
      try ledger.notePolicy(script.device.folder.policy(of: ledger).read().digest, realClock: testTime)
      return true
    }
  }

  static func trust(_ issuer: Int) -> DeviceStep {
    DeviceStep("trust") { script in
      try script.device.ledger.trust(.signing(script.issuers[issuer].point), realClock: testTime)
    }
  }

  /// The claims of a token with one use.
  static func oneUse(_ claims: inout TestClaims) {
    (claims.tokenID, claims.maximumUses) = (TokenID(filledWith: 1), 1)
  }

  static func threeUses(_ claims: inout TestClaims) {
    (claims.tokenID, claims.maximumUses) = (TokenID(filledWith: 3), 3)
    claims.expires = testTime + 900_000
  }

  /// The life with which a failing disk is tried: one without repetitions.
  static var shortLife: [DeviceStep] {
    [open, trust(0), start, noteOfPolicy]
      + rounds.filter { $0.name != "an old generation" && $0.name != "a new generation" }
      + end + [open, start, round("open to the end", "unlock"), round("locked", "lock")]
  }

  /// From trust to the second start, with rounds of each kind.
  static var life: [DeviceStep] {
    [open, trust(0), trust(1), start, noteOfPolicy] + rounds + bulletins + ownersWork + end + [
      open, start, open, start,
    ] + longLog
  }

  static var rounds: [DeviceStep] {
    [
      round("accepted", "unlock"),
      round("denied", "lock", .integrityMismatch, flaws: .wrongIntegrity),
      round("the only use", "lock", token: oneUse),
      round("no use left", "unlock", .usesExhausted, token: oneUse),
      round("a numbered round", "unlock", number: 70), round("a later number", "lock", number: 72),
      repetition("its repetition", "lock", .accepted, number: 72),
      repetition("the repetition of an earlier one", "unlock", .internal, number: 70),
      round("a number in between", "unlock", number: 71),
      round("a new generation", "unlock", issuer: 1) { $0.generation = 4 },
      round("an old generation", "lock", .tokenRevoked, issuer: 1),
      round("a later time", "lock") { $0.issuedAt = testTime + 60 },
      compatibilityRound("a nonce", .accepted),
      compatibilityRound("the nonce again", .deviceMismatch),
      DeviceStep("totals of peers that proved nothing") { script in
        let prover = try script.device.prover()
        return try script.records { try $0.connect().round(prover, "lock", flaws: .wrongDevice) }
      },
    ]
  }

  /// The numbers in ``rounds``.
  static let numberedCommands: [(UInt64, String)] = [(70, "unlock"), (71, "unlock"), (72, "lock")]

  /// The claims of the token that a bulletin revokes.
  static func revoked(_ claims: inout TestClaims) {
    (claims.tokenID, claims.generation, claims.expires) = (TokenID(filledWith: 5), 9, testTime + 900_000)
  }

  private static func bulletin(
    _ name: String, _ result: BulletinResult = .taken, number: UInt64, _ change: @escaping (inout TestBulletin) -> Void
  ) -> DeviceStep {
    DeviceStep(name, isRecorded: result == .taken) { script in
      let device: TestDevice = script.device
      var bulletin = TestBulletin(for: device.folder.descriptor.deviceID)
      (bulletin.number, bulletin.issuedAt) = (1000 * testTime + 1_000_000 + number, testTime + 120)
      change(&bulletin)
      var policy = device.policy
      policy.introducers = [try script.issuers[0].keyID()]
      return try device.take(try script.issuers[0].bulletin(bulletin), under: policy) == result
    }
  }

  /// Bulletins of each kind: each does all of it or nothing.
  static var bulletins: [DeviceStep] {
    let point = P256Point(x: FixedBytes(filledWith: 1), y: FixedBytes(filledWith: 2))
    var cryptography = OpenSSLCryptography()
    let introduced = try? keyID(of: point, using: &cryptography)
    return [
      bulletin("a bulletin", number: 1) {
        $0.revoked = [(TokenID(filledWith: 5), until: testTime + 900_000)]
        $0.versions = [("another app", 1, 2, 3)]
        $0.introduced = [IntroducedKey(point: point, from: 5, until: testTime + 900_000)]
      },
      bulletin("a bulletin that needs another one", .missed, number: 3) { $0.predecessor = $0.number - 1 },
      bulletin("the bulletin after it", number: 2) {
        $0.predecessor = $0.number - 1
        $0.revoked = [(TokenID(filledWith: 6), until: testTime + 200)]
        $0.ended = introduced.map { [$0] } ?? []
        $0.versions = [("another app", 2, 0, 0)]
      },
      bulletin("an older bulletin", .known, number: 1) { $0.generation = 9 },
      round("a revoked token", "lock", .tokenRevoked, token: revoked),
    ]
  }

  static var ownersWork: [DeviceStep] {
    [
      DeviceStep("an issuer less") { script in
        try script.device.ledger.removeTrust(script.issuers[1].keyID(), realClock: testTime)
      },
      round("an issuer that is trusted no longer", "lock", .tokenInvalid, issuer: 1) { $0.generation = 5 },
      DeviceStep("another policy") { script in
        script.device.policy.limits.maximumAgeSeconds = 1_000_000_000
        try script.device.folder.write(script.device.policy)
        return true
      },
      noteOfPolicy,
      DeviceStep("an end of the trust") { script in
        let terms = TrustTerms(from: 1, until: testTime + 10_000_000, label: BoundedText("backend"))
        let issuer = script.issuers[0].point
        return try script.device.ledger.trust(.signing(issuer), terms: terms, realClock: testTime)
      },
      owner("a clock floor by hand") { try $0.moveClockFloor(to: testTime + 300_000, realClock: testTime) },
      owner("a clock floor back") { try $0.moveClockFloor(to: testTime + 200_000, realClock: testTime) },
      DeviceStep("a generation floor by hand") { script in
        let ledger = script.device.ledger
        return try ledger.moveGenerationFloor(of: script.issuers[1].keyID(), to: 3, realClock: testTime) == 4
      },
      round("what is outdated goes", "status") { $0.expires = testTime + 900_000 },
    ]
  }

  static var end: [DeviceStep] {
    [
      DeviceStep("the last totals") { script in
        try script.records { $0.ledger.recordTotals(milliseconds: 0, realClock: testTime, isForced: true) }
      },
      owner("stop") { try $0.finish(realClock: testTime) },
      owner("checkpoint") { try $0.checkpoint() },
    ]
  }

  /// SQLite moves its log into the file by itself, and begins it anew, here after a few pages.
  static var longLog: [DeviceStep] {
    [
      DeviceStep("a short log") { script in
        _ = try script.device.ledger.read { (tables) throws(DatabaseError) in
          try tables.database.oneInteger("PRAGMA wal_autocheckpoint = 12")
        }
        return true
      },
      round("one of three", "lock", token: threeUses),
      round("two of three", "unlock", token: threeUses),
      round("three of three", "lock", token: threeUses),
      round("four of three", "unlock", .usesExhausted, token: threeUses),
      round("open to the end", "unlock") { $0.expires = testTime + 900_000 },
    ]
  }
}
