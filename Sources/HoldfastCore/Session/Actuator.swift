/// What an accepted command moves: a lock, a charger, a pump.
public protocol Actuator: ~Copyable {
  /// Carries out `request` and appends what it has to say, at most 1024 bytes, to `result`. Called once for each accepted
  /// round, after its record is durable. The commands of users (``UserCommandName``) never come here.
  mutating func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure)
}

/// The command was accepted but could not be carried out.
public struct ActuatorFailure: Error, Equatable {
  /// Whether the actuator does not know the command at all, so that policy allows what nothing here does.
  public let isUnknownCommand: Bool

  public init(isUnknownCommand: Bool = false) {
    self.isUnknownCommand = isUnknownCommand
  }
}

/// What a device of Holdfast's own moves: a lock, simulated or not.
public protocol Lock: ~Copyable {
  /// Where it stands.
  var current: LockState { get }
  /// Moves it; throws where it does not stand there afterwards.
  mutating func move(to target: LockState) throws(ActuatorFailure)
}

/// Where a lock stands.
public enum LockState: Sendable, Equatable {
  case locked, unlocked
}

/// The commands of a lock: `lock`, `unlock` and `status`, each of which answers `locked` or `unlocked`, and two that only say
/// what they did: `configure` and `open-safe`.
///
/// Parameters are taken and ignored. Any other command is unknown, though policy may name it.
public struct LockActuator<Device: Lock & ~Copyable>: ~Copyable, Actuator {
  private var lock: Device

  public init(_ lock: consuming Device) {
    self.lock = lock
  }

  public mutating func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
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

  private func append(_ answer: StaticString, to result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(answer) } catch { throw ActuatorFailure() }
  }
}

extension LockActuator: Copyable where Device: Copyable {}

/// What time it is, supplied from outside.
public protocol Clock: ~Copyable {
  /// Seconds since 1970-01-01 00:00 UTC; nil where there is no real clock.
  func unixSeconds() -> UInt64?

  /// Milliseconds since some moment before the program started; it never goes back.
  func monotonicMilliseconds() -> UInt64
}
