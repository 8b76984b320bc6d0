import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

/// A real device in a folder, which is served at a socket, with an app that is enrolled for it.
final class ServedLock {
  let folder: TemporaryFolder
  let endpoint: Endpoint
  let prover: Prover
  let descriptor: DeviceDescriptor
  private let device: OpenDevice<DeviceSecrets, SystemRandom, SystemClock>
  private let server: DeviceServer<Relay, DeviceSecrets, SystemRandom, SystemClock>
  private let thread: Thread

  init(policy: DevicePolicy = .forSimulatedLock) throws {
    folder = try TemporaryFolder()
    let lock = try DeviceFolder.create(at: folder.file("lock"), policy: policy)
    let key = try MemorySigningKey()
    try lock.trust(issuer: key.publicPoint)
    prover = Prover(state: folder.file("phone"), keys: .default)
    let descriptor = lock.descriptor
    self.descriptor = descriptor
    try prover.enroll(for: descriptor) { evidence in
      let submitted = try SubmittedEvidence(evidence)
      let approval = ImageApproval(
        subject: BoundedText("app" as StaticString), version: AppVersion(major: 1, minor: 0, patch: 0),
        keys: try ReleaseKeys(of: ReleaseRoots.default().root(at: 0)))
      let now = try #require(SystemClock().unixSeconds())
      let app = try submitted.appraised(as: approval, refusing: [], now: now)
      let issuer = TokenIssuer(name: BoundedText("backend" as StaticString), key: key)
      return MeasurementToken(try issuer.issue(to: app, for: descriptor, generation: 1, now: now).bytes)
    }
    endpoint = try Endpoint(parsing: "unix:\(folder.file("s"))")
    device = try OpenDevice(folder: lock, random: SystemRandom(), clock: SystemClock()) { _ in }
    let server = try DeviceServer(device, actuator: Relay(), at: [endpoint])
    self.server = server
    thread = try Thread { do { try server.run() } catch { Issue.record(error) } }
  }

  deinit {
    server.stop()
    thread.join()
    device.close()
  }

  /// The policy of the lock with requests for seals.
  static var withSealRequests: DevicePolicy {
    var policy = DevicePolicy.forSimulatedLock
    policy.commands[UserCommandName.sealRequest] = CommandRule(factors: [.device])
    policy.texts[BoundedText("open-safe")] = RequestTemplate("Open safe {1}")
    return policy
  }

  /// The audit log's last events, the newest last.
  func lastEvents(_ count: UInt64) throws -> [AuditEvent] {
    let ledger = try device.folder.openLedger()
    let total = try ledger.summary().audit.count
    return try ledger.auditEntries(after: total - count, limit: count).map(\.event)
  }

  /// Returns a code of the owner that activates a user.
  func activation(
    of user: BoundedText<32>, otp: CodeMethod = hotpMethod, replaces: Bool = false,
    terms: ActivationTerms = ActivationTerms()
  ) throws -> OneUseCode {
    var random = SystemRandom()
    let methods = ByPurpose<CodeMethod>(otp: otp, seal: counterSealMethod)
    return try device.folder.openLedger().issueActivation(
      of: user, methods, replaces: replaces, terms: terms, realClock: SystemClock().unixSeconds(), random: &random)
  }

  /// Returns a code of the owner that unlocks a user and gives new secrets.
  func renewal(of user: BoundedText<32>) throws -> OneUseCode {
    var random = SystemRandom()
    return try device.folder.openLedger().issueRenewal(
      of: user, realClock: SystemClock().unixSeconds(), random: &random)
  }

  /// Locks a user out.
  func lock(_ user: BoundedText<32>) throws {
    try device.folder.openLedger().lockUser(user, until: maximumInteger, realClock: SystemClock().unixSeconds())
  }
}

/// An actuator that carries out everything.
struct Relay: Actuator {
  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {}
}
