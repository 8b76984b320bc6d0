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
