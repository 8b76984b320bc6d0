/// The parts that a device gives to its sessions. The environment names their types, so that the compiler generates code for
/// exactly these.
///
/// An enum without cases is enough.
public protocol DeviceEnvironment {
  /// The cryptographic primitives.
  associatedtype Crypto: Cryptography, ~Copyable
  /// The device's private key.
  associatedtype Key: AgreementKey, ~Copyable
  /// The store of everything that the device must not forget.
  associatedtype Store: DeviceStore, ~Copyable
  /// The policy of the device's owner.
  associatedtype Rules: Policy, ~Copyable
  /// The source of random bytes.
  associatedtype Random: RandomSource, ~Copyable
  /// The clocks.
  associatedtype Time: Clock, ~Copyable
}

/// The part of a device that failed. The device must not act upon anything then, and answers `internal`.
public enum DeviceFault: Error, Equatable {
  /// The store could not be read or written.
  case store
  /// The source of random bytes failed.
  case random
  /// A cryptographic primitive failed.
  case cryptography
  /// A message or a value that the device makes did not fit.
  case encoding
}

/// A machine that accepted commands move: a lock, a charger, a pump.
public protocol Actuator: ~Copyable {
  /// Carries out `request` and appends its output, at most 1024 bytes, to `result`. The device calls it once for each
  /// accepted round, after the round's record is durable. The commands of users (``UserCommandName``) never reach it.
  ///
  /// - Throws: if the command could not be carried out; the round then ends with `internal`.
  mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure)
}

/// The failure of a command that was accepted but could not be carried out.
public struct ActuatorFailure: Error, Equatable {
  /// Whether the actuator does not know the command at all, although policy allows it.
  public let isUnknownCommand: Bool

  /// Creates the failure.
  public init(isUnknownCommand: Bool = false) {
    self.isUnknownCommand = isUnknownCommand
  }
}

/// A lock that ``LockActuator`` moves, simulated or not.
public protocol Lock: ~Copyable {
  /// The present state of the lock.
  var current: LockState { get }
  /// Moves the lock. Throws if it is not in the state `target` afterwards.
  mutating func move(to target: LockState) throws(ActuatorFailure)
}

/// The state of a lock.
public enum LockState: Sendable, Equatable {
  /// The lock is locked or unlocked.
  case locked, unlocked
}

/// An actuator with the commands of a lock: `lock`, `unlock` and `status`, each of which answers `locked` or
/// `unlocked`, and two that do nothing but answer `configured` and `safe opened`: `configure` and `open-safe`.
///
/// It ignores parameters. It does not know any other command, even if policy names one.
public struct LockActuator<Device: Lock & ~Copyable>: ~Copyable, Actuator {
  private var lock: Device

  /// Creates an actuator that moves `lock`.
  public init(_ lock: consuming Device) {
    self.lock = lock
  }

  /// Carries out a command of the lock and appends its answer to `result`.
  ///
  /// - Throws: if the lock does not move, or for an unknown command.
  public mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    let command = request.command
    if command.bytes.elementsEqual("lock") {
      try lock.move(to: .locked)
      try append("locked", to: &result)
    } else if command.bytes.elementsEqual("unlock") {
      try lock.move(to: .unlocked)
      try append("unlocked", to: &result)
    } else if command.bytes.elementsEqual("status") {
      try append(lock.current == .locked ? "locked" : "unlocked", to: &result)
    } else if command.bytes.elementsEqual("configure") {
      try append("configured", to: &result)
    } else if command.bytes.elementsEqual("open-safe") {
      try append("safe opened", to: &result)
    } else {
      throw ActuatorFailure(isUnknownCommand: true)
    }
  }

  private func append(_ answer: StaticString, to result: inout ResultBuffer) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(answer) } catch { throw ActuatorFailure() }
  }
}

extension LockActuator: Copyable where Device: Copyable {}

/// A source of time, supplied from outside.
public protocol Clock: ~Copyable {
  /// Returns the seconds since 1970-01-01 00:00 UTC; nil if there is no real clock.
  func unixSeconds() -> UInt64?

  /// Returns the milliseconds since some moment before the program started. The value never goes back.
  func monotonicMilliseconds() -> UInt64
}
