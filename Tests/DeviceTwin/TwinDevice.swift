import HoldfastOpenSSL
import HoldfastLinux
import Synchronization

import HoldfastCore
import HoldfastDevice
import HoldfastFirmware

/// The parts of the device of Linux, with the policy of a board.
private enum TwinEnvironment: DeviceEnvironment {
  typealias Crypto = OpenSSLCryptography
  typealias Key = DeviceSecrets.Key
  typealias Store = SessionStore<TwinClock>
  typealias Rules = TwinPolicy
  typealias Random = NoRandom
  typealias Time = TwinClock
}

/// A policy under which the device does no more than a board can: it tells no state of users and no reasons of rejections.
private struct TwinPolicy: Policy {
  let policy: DevicePolicy

  func rule(for command: BoundedText<32>) -> CommandRule? { policy.rule(for: command) }
  var limits: TokenLimits { policy.limits }
  var commonFactors: Factors { policy.commonFactors }
  var acceptsUnsigned: Bool { policy.acceptsUnsigned }
  var acceptsMAC: Bool { policy.acceptsMAC }
  var codeLimits: CodeLimits { policy.codeLimits }
  var maximumIssueAdvanceSeconds: UInt64 { policy.maximumIssueAdvanceSeconds }
  static var knowsBulletins: Bool { true }
}

/// The device of Linux with what an image was given: key and id, issuers, policy, users, clock floor.
///
/// Like the board it has no calendar, and its bounds are those of a board. The challenges come from outside, and with them the
/// time that has passed.
struct TwinDevice: ~Copyable {
  private let image: FirmwareImage
  private let ledger: Ledger
  private let clock: TwinClock
  private var session: Session
  private var actuator = LockActuator(MemoryLock())

  private typealias Session = DeviceSession<TwinEnvironment>

  /// Reads the image, and makes a ledger at a path where there is none.
  init(image path: String, ledger ledgerPath: String) throws {
    let image = try FirmwareImage.open(at: path)
    let floor = try image.look { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(DeviceFault) in try store.clockFloor() }
    }
    try Ledger.create(path: ledgerPath, deviceID: image.descriptor.deviceID, realClock: floor)
    let limits = LedgerLimits(keptCount: 64, nonceQuota: 8, requestCount: 64, issuerCount: 8, userCount: 16)
    let ledger = try Ledger(path: ledgerPath, limits: limits)
    try Self.copyIssuers(from: image, to: ledger)
    try Self.copyUsers(from: image, to: ledger)
    let clock = TwinClock()
    self.init(image, ledger, clock, try Self.session(image, ledger, clock))
  }

  private init(_ image: FirmwareImage, _ ledger: Ledger, _ clock: TwinClock, _ session: consuming Session) {
    (self.image, self.ledger, self.clock) = (image, ledger, clock)
    self.session = session
  }

  /// Forgets what a device forgets when it is switched off.
  mutating func restart() throws {
    session = try Self.session(image, ledger, clock)
    actuator = LockActuator(MemoryLock())
  }

  /// M3 to an M2 that answers this M1, that many seconds after the time in it.
  mutating func answer(_ message: [UInt8], to challenge: [UInt8], after seconds: UInt64) throws -> [UInt8] {
    let (time, known) = ((try Challenge(challenge.span).clock ?? 0) + seconds, try session.now())
    if time > known { clock.goOn(seconds: time - known) }
    try session.beginRound(challenge: challenge.span)
    _ = session.respond(to: message.span, waitedMilliseconds: 0, actuator: &actuator)
    let verdict = session.outgoing.bytes
    return verdict.indices.map { verdict[$0] }
  }

  private static func session(_ image: FirmwareImage, _ ledger: Ledger, _ clock: TwinClock) throws -> Session {
    let scalar = try image.look { (_, provision) throws(LedgerFault) in provision.scalar.copy() }
    let policy = TwinPolicy(policy: image.policy)
    return Session(
      deviceID: image.descriptor.deviceID, keyID: image.descriptor.keyID, cryptography: OpenSSLCryptography(),
      key: try DeviceSecrets(scalar: scalar).key(),
      store: SessionStore(ledger: ledger, memory: TokenMemory(capacity: 8), clock: clock), policy: policy,
      random: NoRandom(), clock: clock, challenges: ChallengeSource(seed: Secret(), bootCount: 0, connection: 0))
  }

  private static func copyIssuers(from image: FirmwareImage, to ledger: Ledger) throws(LedgerFault) {
    try image.look { (_, provision) throws(LedgerFault) in
      for index in 0..<provision.issuers.count {
        guard let key = provision.issuers[provision.issuers.keyID(index)] else { throw .failed }
        try ledger.trust(key, realClock: nil)
      }
    }
  }

  private static func copyUsers(from image: FirmwareImage, to ledger: Ledger) throws(LedgerFault) {
    for user in try image.users() {
      var accounts: [NewAccount] = []
      for (purpose, account) in [(CodePurpose.otp, user.record.accounts[.otp]), (.seal, user.record.accounts[.seal])] {
        guard let account else { continue }
        let secret = try image.look { (store, _) throws(LedgerFault) in
          let secret = try store.attempt { (store) throws(DeviceFault) in
            try store.codeSecret(of: user.record.id, purpose)
          }
          guard let secret else { throw .failed }
          return SecretBytes(copying: secret.bytes)
        }
        let new = NewAccount(
          purpose: purpose, method: account.method, nextPosition: account.nextPosition, secret: secret)
        guard let new else { throw .failed }
        accounts.append(new)
      }
      try ledger.addUser(user.name, accounts, replaces: false, realClock: user.record.lastAccepted)
    }
  }
}

/// The board's time is what tokens tell it, and what has passed since then.
private final class TwinClock: Clock, Sendable {
  private let milliseconds = Atomic<UInt64>(0)
  func unixSeconds() -> UInt64? { nil }
  func monotonicMilliseconds() -> UInt64 { milliseconds.load(ordering: .relaxed) }
  func goOn(seconds: UInt64) { milliseconds.add(seconds * 1000, ordering: .relaxed) }
}

/// The challenges are given: nothing else that is compared is random.
private struct NoRandom: RandomSource {
  func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) { throw RandomFailure() }
}

private struct MemoryLock: Lock {
  var current = LockState.locked
  mutating func move(to target: LockState) { current = target }
}
