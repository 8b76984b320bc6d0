import HoldfastCore

/// The view that one connection has of an external actuator. Only one thread uses it.
package struct ActuatorClient: Actuator {
  private let actuator: ExternalActuator
  private let record: @Sendable (AuditedActuatorEvent) -> Void
  /// The reserved place.
  private var place: Int?

  /// Makes a view without a place.
  ///
  /// - Parameter record: gets the event that the actuator reports with the outcome of a command, for the audit log.
  package init(_ actuator: ExternalActuator, record: @escaping @Sendable (AuditedActuatorEvent) -> Void = { _ in }) {
    (self.actuator, self.record) = (actuator, record)
  }

  package func carriesOut(_ command: BoundedText<32>) -> Bool { actuator.carriesOut(command) }

  package mutating func reservePlace() -> Bool {
    place = actuator.queue.reserve()
    return place != nil
  }

  package mutating func releasePlace() {
    if let place = place.take() { actuator.queue.release(place) }
  }

  package mutating func perform(
    _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    guard let place = place.take() else { throw .unavailable }
    actuator.queue.submit(ActuatorCommand(request, of: round), at: place)
    let sequence = round.sequence
    let output = try actuator.queue.wait(at: place) { record(AuditedActuatorEvent(round: sequence, $0)) }.get()
    do throws(EncodingFault) { try result.append(output.span) } catch { throw .badAnswer }
  }

  /// Carries out a command of a round that was not recorded.
  package mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    try perform(request, of: AcceptedRound(), result: &result)
  }
}
