import HoldfastCore
import HoldfastLinux
import Synchronization

/// The places for the commands of an external actuator, which carries out one after the other.
///
/// A round reserves a place before it is recorded, puts its command there, and waits. One thread takes the commands in the
/// order in which they came, and puts in the outcomes. There are no places while the actuator is not running.
package final class CommandQueue: Sendable {
  /// The outcome of a command: its result, at most 1024 bytes.
  package typealias Outcome = Result<[UInt8], ActuatorFailure>

  private enum Place {
    case free, reserved
    case waiting(ActuatorCommand)
    case handedOver
    case finished(Outcome, event: BoundedText<64>?)
    /// It was handed over, and its round no longer waits.
    case abandoned
  }

  private struct State {
    var places: [Place]
    /// The places whose commands wait, in their order.
    var order: [Int] = []
    var isOpen = false
  }

  private let state: Mutex<State>
  /// A flag for each place, raised once its command is finished.
  private let flags: [WakeUp]
  private let turnMilliseconds: Int
  private let answerMilliseconds: Int
  /// Raised when a command waits.
  private let wakeUp: WakeUp

  /// Makes a closed queue.
  ///
  /// - Parameters:
  ///   - placeCount: the most commands that are under way or wait.
  ///   - turnMilliseconds: the longest time that a command waits for its turn.
  ///   - answerMilliseconds: the longest time that it takes from then on, whatever the thread does that carries it out.
  ///   - wakeUp: raised for each command that waits.
  /// - Throws: `EMFILE` or `ENFILE` if the process has no descriptors left.
  package init(
    placeCount: Int, turnMilliseconds: Int, answerMilliseconds: Int, wakeUp: WakeUp
  ) throws(SystemError) {
    var flags: [WakeUp] = []
    for _ in 0..<placeCount { flags.append(try WakeUp()) }
    self.flags = flags
    self.turnMilliseconds = turnMilliseconds
    self.answerMilliseconds = answerMilliseconds
    self.wakeUp = wakeUp
    state = Mutex(State(places: Array(repeating: .free, count: placeCount)))
  }

  /// Reserves a place; nil if all are taken, or if the queue is closed.
  package func reserve() -> Int? {
    state.withLock { state in
      guard state.isOpen, let place = state.places.firstIndex(where: { if case .free = $0 { true } else { false } })
      else { return nil }
      state.places[place] = .reserved
      return place
    }
  }

  /// Gives back a reserved place.
  package func release(_ place: Int) {
    state.withLock { $0.places[place] = .free }
  }

  /// Puts a command into a reserved place. It waits for its turn there.
  package func submit(_ command: ActuatorCommand, at place: Int) {
    state.withLock { state in
      guard state.isOpen else { return finish(place, .failure(.unavailable), in: &state) }
      state.places[place] = .waiting(command)
      state.order.append(place)
    }
    wakeUp.raise()
  }

  /// Waits for the outcome of the command that was put into a place, and frees the place.
  ///
  /// - Parameter record: gets the event that the actuator reported with the outcome.
  package func wait(at place: Int, record: (BoundedText<64>) -> Void = { _ in }) -> Outcome {
    if !flags[place].wait(milliseconds: UInt64(turnMilliseconds)), withdraw(place) {
      return .failure(.notHandedOver)
    }
    flags[place].wait(milliseconds: UInt64(answerMilliseconds))
    let (outcome, event) = take(place)
    if let event { record(event) }
    return outcome
  }

  /// Takes the command that has waited longest; nil if none waits.
  package func next() -> (place: Int, command: ActuatorCommand)? {
    state.withLock { state in
      guard let place = state.order.first, case .waiting(let command) = state.places[place] else { return nil }
      state.order.removeFirst()
      state.places[place] = .handedOver
      return (place, command)
    }
  }

  /// Puts in the outcome of a command that was taken.
  package func finish(_ place: Int, _ outcome: Outcome, event: BoundedText<64>? = nil) {
    state.withLock { finish(place, outcome, event: event, in: &$0) }
  }

  /// Opens the queue: the actuator is running.
  package func open() {
    state.withLock { $0.isOpen = true }
  }

  /// Closes the queue: there are no places, and the commands that wait fail.
  package func close() {
    state.withLock { state in
      state.isOpen = false
      for place in state.order { finish(place, .failure(.unavailable), in: &state) }
      state.order = []
    }
  }

  private func finish(_ place: Int, _ outcome: Outcome, event: BoundedText<64>? = nil, in state: inout State) {
    if case .abandoned = state.places[place] {
      state.places[place] = .free
    } else {
      state.places[place] = .finished(outcome, event: event)
      flags[place].raise()
    }
  }

  /// Frees a place whose command still waits; returns false if it was taken meanwhile.
  private func withdraw(_ place: Int) -> Bool {
    state.withLock { state in
      guard case .waiting = state.places[place] else { return false }
      state.order.removeAll { $0 == place }
      state.places[place] = .free
      return true
    }
  }

  /// Takes an outcome and frees its place. Without an outcome, the place stays taken until there is one.
  private func take(_ place: Int) -> (Outcome, event: BoundedText<64>?) {
    state.withLock { state in
      guard case .finished(let outcome, let event) = state.places[place] else {
        state.places[place] = .abandoned
        return (.failure(.timedOut), nil)
      }
      state.places[place] = .free
      _ = flags[place].lower()
      return (outcome, event)
    }
  }
}

extension ActuatorFailure {
  /// The failures of an external actuator that does not answer as it should, with the words that the prover receives.
  static var unavailable: ActuatorFailure { ActuatorFailure(.unavailable, text: BoundedText("actuator not available")) }
  static var notHandedOver: ActuatorFailure { ActuatorFailure(.notHandedOver, text: BoundedText("not carried out")) }
  static var timedOut: ActuatorFailure {
    ActuatorFailure(.timedOut, text: BoundedText("the actuator did not answer in time"))
  }
  static var ended: ActuatorFailure {
    ActuatorFailure(.ended, text: BoundedText("the actuator ended before it answered"))
  }
  static var badAnswer: ActuatorFailure {
    ActuatorFailure(.badAnswer, text: BoundedText("the actuator's answer was not as documented"))
  }
}

extension ActuatorLinkFault {
  /// The failure of the command that was under way.
  var failure: ActuatorFailure {
    switch self {
    case .timedOut, .woken: .timedOut
    case .ended: .ended
    case .badMessage: .badAnswer
    }
  }
}
