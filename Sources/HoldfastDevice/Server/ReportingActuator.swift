import HoldfastCore

/// An actuator that reports commands which policy allows and nothing carries out, so that the owner finds the mistake: all that
/// the prover's user can do is ask.
struct ReportingActuator: Actuator {
  private var lock: LockActuator<SimulatedLock>
  private let report: (BoundedText<32>) -> Void

  /// `report` gets the command.
  init(_ lock: LockActuator<SimulatedLock>, report: @escaping (BoundedText<32>) -> Void) {
    (self.lock, self.report) = (lock, report)
  }

  mutating func perform(
    _ request: borrowing Request, result: inout ByteBuffer<1024>
  ) throws(ActuatorFailure) {
    do throws(ActuatorFailure) { try lock.perform(request, result: &result) } catch {
      if error.isUnknownCommand { report(request.command) }
      throw error
    }
  }
}
