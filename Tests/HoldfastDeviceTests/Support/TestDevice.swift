import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

/// A device in a folder of its own that trusts one issuer.
final class TestDevice {
  let place: TemporaryFolder
  let folder: DeviceFolder
  let clock: TestClock
  let memory = TokenMemory()
  let issuer: TestIssuer
  let lock: SimulatedLock
  private(set) var ledger: Ledger
  var policy: DevicePolicy
  /// The pages of the audit log, as one process gives them.
  lazy var pages = makePages()

  init(
    policy: DevicePolicy = .forSimulatedLock, limits: LedgerLimits = LedgerLimits(), seed: UInt64 = 1,
    clock: TestClock = TestClock(), tpm: FakeTPM? = nil, in directory: String = NSTemporaryDirectory()
  ) throws {
    self.clock = clock
    place = try TemporaryFolder(in: directory)
    var random = TestRandom(state: seed)
    folder = try DeviceFolder.create(
      at: place.path + "/device", policy: policy, tpm: tpm.map { _ in FakeTPM.path },
      operations: tpm?.operations ?? .tpm,
      random: &random, clock: clock)
    ledger = try folder.openLedger(limits: limits)
    issuer = try TestIssuer()
    lock = try folder.openLock()
    self.policy = policy
    try ledger.trust(.signing(issuer.point), realClock: clock.seconds)
  }

  /// Opens the folder at `path` as a new process would; `issuer` is the one whose tokens it will be shown.
  init(opening path: String, in place: TemporaryFolder, issuer: TestIssuer) throws {
    (self.place, self.issuer, clock) = (place, issuer, TestClock())
    folder = try DeviceFolder.open(at: path)
    ledger = try folder.openLedger()
    lock = try folder.openLock()
    policy = try folder.policy(of: ledger).read().policy
  }

  /// The contents that a new process would see.
  func reopenLedger(limits: LedgerLimits = LedgerLimits()) throws {
    ledger = try folder.openLedger(limits: limits)
  }

  /// Takes the whole folder as it is now.
  func copyFolder(to name: String) throws {
    try FileManager.default.copyItem(atPath: folder.path, toPath: place.file(name))
  }

  /// Puts a copy in the folder's place.
  func restoreFolder(from name: String) throws {
    try FileManager.default.removeItem(atPath: folder.path)
    try FileManager.default.copyItem(atPath: place.file(name), toPath: folder.path)
  }

  /// A prover with a token of the device's issuer, or of another one.
  func prover(
    from other: TestIssuer? = nil, isSigned: Bool = true, _ change: (inout TestClaims) -> Void = { _ in }
  ) throws -> TestProver {
    var claims = TestClaims(for: folder.descriptor.deviceID)
    change(&claims)
    let token = try (other ?? issuer).token(
      claims, to: folder.descriptor.publicKey.point, flaws: TokenFlaws(isSigned: isSigned))
    return TestProver(claims, token: token)
  }

  private func makePages() -> AuditPages {
    let folder = folder
    return AuditPages(of: folder.descriptor.deviceID) { (point) throws(CryptographyFailure) in
      guard let secrets = try? folder.secrets() else { throw CryptographyFailure() }
      return try secrets.agree(with: point)
    } random: { () throws(RandomFailure) in
      var random = SystemRandom()
      return try random.fixedBytes()
    }
  }

  /// A connection without a socket.
  func connect(number: UInt64 = 1, random: UInt8 = 1) throws -> TestConnection {
    try TestConnection(self, number: number, random: RepeatingRandom([random]))
  }

  /// Takes a bulletin as from its owner, under the device's policy or another one.
  func take(_ bulletin: [UInt8], under other: DevicePolicy? = nil) throws -> BulletinResult {
    var key = try folder.secrets().key()
    var store = SessionStore(ledger: ledger, memory: memory, clock: clock)
    var allowance = MailAllowance.owner
    var cryptography = OpenSSLCryptography()
    return try takeBulletin(
      bulletin.span, to: folder.descriptor.deviceID, key: &key, keyID: folder.descriptor.keyID, store: &store,
      policy: other ?? policy, realClock: clock.seconds, allowance: &allowance, using: &cryptography
    ).result
  }

  /// Opens the device, as a process that serves it does.
  func opened() throws(DeviceFolderFault) -> OpenDevice<DeviceSecrets, SystemRandom, TestClock> {
    try OpenDevice(folder: folder, random: SystemRandom(), clock: clock)
  }

  /// Changes the ledger behind the device's back.
  func tamper(_ sql: StaticString, _ values: Value...) throws {
    let database = try Database(
      path: DeviceFile.ledger.path(in: folder.path), applicationID: LedgerTables.applicationID,
      schema: LedgerTables.schema, creation: .never)
    switch values.count {
    case 0: try database.run(sql)
    default: try database.run(sql, values[0])
    }
    try database.close()
  }
}

extension DeviceFolder {
  /// The policy file of a device that is not open.
  func policyFile() throws -> PolicyFile { try policy(of: openLedger()) }
}

/// One connection of a ``TestDevice``, judged in this thread.
final class TestConnection {
  private let device: TestDevice
  private let policy: SessionPolicy
  private var actuator: LockActuator<SimulatedLock>
  private var session: DeviceSession<LinuxEnvironment<DeviceSecrets, RepeatingRandom, TestClock>>
  private(set) var lastResponse: RoundOutcome?

  init(_ device: TestDevice, number: UInt64, random: RepeatingRandom) throws {
    self.device = device
    policy = SessionPolicy(ledger: device.ledger)
    actuator = LockActuator(device.lock)
    let secrets = try device.folder.secrets()
    session = DeviceSession(
      deviceID: device.folder.descriptor.deviceID, keyID: device.folder.descriptor.keyID,
      cryptography: OpenSSLCryptography(), key: try secrets.key(),
      store: SessionStore(
        ledger: device.ledger, memory: device.memory, clock: device.clock, policy: policy, pages: device.pages),
      policy: policy,
      random: random, clock: device.clock,
      challenges: ChallengeSource(seed: secrets.challengeSeed(), bootCount: 1, connection: number))
  }

  /// M1.
  func challenge() throws -> [UInt8] {
    policy.current = device.policy
    try session.makeChallenge()
    return session.challenge.array
  }

  /// M3 for `message`.
  func respond(_ message: [UInt8], waitedMilliseconds: UInt64 = 0) -> [UInt8] {
    lastResponse = session.respond(
      to: message.span, waitedMilliseconds: waitedMilliseconds, actuator: &actuator)
    return session.outgoing.array
  }

  /// The answer to a message about mail; nil if it is another message.
  func mail(_ kind: MailMessage.Kind, _ bytes: [UInt8] = []) throws -> MailAnswer? {
    if !session.isChallengeOpen { _ = try challenge() }
    var message: [UInt8] = []
    MailMessage.encode(kind, bytes.span, into: &message)
    return session.respondToMail(message.span)
  }

  /// A page of the audit log; nil if the device gives none.
  func page(from: UInt64 = 0) throws -> [UInt8]? {
    let answer = try #require(try mail(.page(from: from)))
    return try PageAnswer(answer.message.span).sealed
  }

  /// The result of delivering a receipt.
  func deliver(receipt: [UInt8]) throws -> BulletinResult {
    let answer = try #require(try mail(.receipt, receipt))
    return try BulletinAnswer(answer.message.span).result
  }

  /// Carries out a command of users, as if a round had been accepted.
  func performUserCommand(_ request: borrowing Request, result: inout ResultBuffer) throws -> Bool {
    try session.performUserCommand(request, result: &result)
  }

  /// A whole round.
  func round(
    _ prover: TestProver, _ command: String = "unlock", parameters: [String] = [], flaws: Flaws = [],
    otp: UserCode? = nil, seal: UserCode? = nil, number: UInt64? = nil, waitedMilliseconds: UInt64 = 0
  ) throws -> TestVerdict {
    let answer = try prover.answer(
      try challenge(), command: command, parameters: parameters, flaws: flaws, otp: otp, seal: seal, number: number)
    return try prover.open(respond(answer.message, waitedMilliseconds: waitedMilliseconds), after: answer)
  }

  /// A whole compatibility round.
  func compatibilityRound(
    _ prover: TestProver, nonce: [UInt8], _ command: String = "unlock", flaws: Flaws = []
  ) throws -> Status {
    _ = try challenge()
    let message = try prover.compatibilityAnswer(nonce: nonce, command: command, flaws: flaws)
    return try VerdictMessage(respond(message).span).status
  }
}
