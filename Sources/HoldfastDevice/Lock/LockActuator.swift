import HoldfastCore

/// One connection's hand on the lock: `lock`, `unlock` and `status`, each of which answers `locked` or `unlocked`, and two
/// that only say what they did: `configure` and `open-safe`.
///
/// Parameters are taken and ignored. Any other command fails, though policy may name it.
public struct LockActuator: Actuator {
  private let lock: SimulatedLock

  public init(_ lock: SimulatedLock) {
    self.lock = lock
  }

  public mutating func perform(_ request: Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    if request.command.bytes.elementsEqual("lock") {
      try lock.move(to: .locked)
      try append("locked", to: &result)
    } else if request.command.bytes.elementsEqual("unlock") {
      try lock.move(to: .unlocked)
      try append("unlocked", to: &result)
    } else if request.command.bytes.elementsEqual("status") {
      try append(lock.current == .locked ? "locked" : "unlocked", to: &result)
    } else if request.command.bytes.elementsEqual("configure") {
      try append("configured", to: &result)
    } else if request.command.bytes.elementsEqual("open-safe") {
      try append("safe opened", to: &result)
    } else {
      throw ActuatorFailure()
    }
  }

  private func append(_ answer: StaticString, to result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(answer) } catch { throw ActuatorFailure() }
  }
}
