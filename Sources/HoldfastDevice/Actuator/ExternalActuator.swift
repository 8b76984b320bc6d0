import HoldfastCore
import HoldfastLinux
import Synchronization

/// An actuator outside this process: a program that is started, or a peer at a socket.
///
/// One thread talks to it: it hands over one command at a time, and never the same one twice. If the actuator does not answer
/// in time, ends, or sends something that is not an answer, it is killed (its socket is closed) and started again after a
/// pause, so an answer always belongs to the command that is under way.
package final class ExternalActuator: Sendable {
  /// The most commands that are under way or wait.
  package static let placeCount = 8
  /// The longest time that a command waits for its turn, in milliseconds.
  package static let turnMilliseconds = 10_000
  /// The longest time from the start to the list of commands, in milliseconds.
  package static let startMilliseconds = 10_000
  /// The range of the time for an answer, in milliseconds.
  package static let timeoutRange = 100...8000
  /// The usual time for an answer, in milliseconds.
  package static let usualTimeoutMilliseconds = 2000
  /// The most answers to other commands that are discarded while one is under way, or none is.
  private static let discardLimit = 16

  private let address: ActuatorAddress
  private let timeoutMilliseconds: Int
  private let notify: @Sendable (ActuatorNotice) -> Void
  let queue: CommandQueue
  private let commands = Mutex<Set<BoundedText<32>>>([])
  /// Raised for each command that waits.
  private let commandFlag: WakeUp
  private let stopFlag: WakeUp
  private let startFlag: WakeUp
  private let startFault = Mutex<ActuatorStartFault?>(nil)
  private let thread = Mutex<Thread?>(nil)

  /// Starts the actuator, and waits until it has said which commands it carries out.
  ///
  /// - Parameters:
  ///   - address: the actuator.
  ///   - timeoutMilliseconds: the time that a command may take from when it is handed over, in ``timeoutRange``.
  ///   - turnMilliseconds: the time that a command may wait for its turn.
  ///   - notify: called from another thread; it must not block for long.
  package init(
    at address: ActuatorAddress, timeoutMilliseconds: Int = ExternalActuator.usualTimeoutMilliseconds,
    turnMilliseconds: Int = ExternalActuator.turnMilliseconds,
    notify: @escaping @Sendable (ActuatorNotice) -> Void = { _ in }
  ) throws(ActuatorStartFault) {
    (self.address, self.timeoutMilliseconds, self.notify) = (address, timeoutMilliseconds, notify)
    do throws(SystemError) {
      (commandFlag, stopFlag, startFlag) = (try WakeUp(), try WakeUp(), try WakeUp())
      // A second more than the thread takes: it is late only if the kernel keeps it waiting.
      queue = try CommandQueue(
        placeCount: Self.placeCount, turnMilliseconds: turnMilliseconds, answerMilliseconds: timeoutMilliseconds + 1000,
        wakeUp: commandFlag)
      // The kernel kills the program when this thread ends, which therefore lives as long as the actuator.
      let thread = try Thread { [self] in run() }
      self.thread.withLock { $0 = consume thread }
    } catch { throw .system(error) }
    startFlag.wait(milliseconds: nil)
    if let fault = startFault.withLock({ $0 }) {
      stop()
      throw fault
    }
  }

  /// Ends the actuator, by SIGTERM and a second later by SIGKILL, and waits for its end. The caller has ended all rounds
  /// before. A second call does nothing.
  package func stop() {
    stopFlag.raise()
    commandFlag.raise()
    let thread = thread.withLock { $0.take() }
    thread?.join()
  }

  /// Returns whether the actuator carries out `command`, as it said when it was last started.
  package func carriesOut(_ command: BoundedText<32>) -> Bool {
    commands.withLock { $0.contains(command) }
  }

  // Everything below runs on the actuator's thread.

  private func run() {
    Thread.blockBrokenPipeSignal()
    var delay = RestartDelay()
    var isFirst = true
    while !stopFlag.isRaised {
      do throws(ActuatorStartFault) {
        var link = try start()
        let startedAt = monotonicMilliseconds()
        queue.open()
        notify(.started(address, commandCount: commands.withLock { $0.count }))
        if isFirst { startFlag.raise() }
        let fault = serve(&link)
        queue.close()
        guard let fault else { return link.close() }
        delay.ended(afterMilliseconds: monotonicMilliseconds() - startedAt)
        notify(.lost(address, fault.failure.reason, link.cut()))
      } catch {
        guard !isFirst else {
          startFault.withLock { $0 = error }
          startFlag.raise()
          return
        }
        if error != .stopped { notify(.notStarted(address, error)) }
      }
      isFirst = false
      stopFlag.wait(milliseconds: delay.next())
    }
  }

  /// Starts the actuator and reads its commands.
  private func start() throws(ActuatorStartFault) -> ActuatorLink {
    let coding = address.coding
    var link: ActuatorLink
    do throws(SystemError) { link = try ActuatorLink(to: address) } catch { throw .system(error) }
    let deadline = Deadline(afterMilliseconds: Self.startMilliseconds)
    do throws(ActuatorLinkFault) {
      try link.send(coding.start, by: deadline)
      let message = try link.receive(by: deadline, orWoken: stopFlag)
      do throws(ActuatorMessageFault) {
        let commands = try coding.commands(message)
        self.commands.withLock { $0 = commands }
      } catch { throw .badMessage(error) }
      return link
    } catch {
      let end = link.cut()
      switch error {
      case .timedOut: throw .silent
      case .ended: throw .ended(end)
      case .badMessage(let fault): throw .badMessage(fault)
      case .woken: throw .stopped
      }
    }
  }

  /// Hands over commands until the actuator fails. Returns the failure, or nil if it was stopped.
  private func serve(_ link: inout ActuatorLink) -> ActuatorLinkFault? {
    var discardedCount = 0
    while !stopFlag.isRaised {
      do throws(ActuatorLinkFault) {
        // What has arrived by now is no answer to a command that is still to be sent.
        while let message = try link.receiveArrived() {
          try discard(message, count: &discardedCount)
        }
        guard let (place, command) = queue.next() else {
          let message = try link.receive(by: .never, orWoken: commandFlag)
          try discard(message, count: &discardedCount)
          continue
        }
        discardedCount = 0
        do throws(ActuatorLinkFault) {
          let (outcome, event) = try carryOut(command, link: &link)
          queue.finish(place, outcome, event: event)
        } catch {
          // Nobody gets a place any more before the round is answered.
          queue.close()
          queue.finish(place, .failure(error.failure))
          throw error
        }
      } catch {
        guard case .woken = error else { return error }
        while commandFlag.lower() {}
      }
    }
    return nil
  }

  private func carryOut(
    _ command: ActuatorCommand, link: inout ActuatorLink
  ) throws(ActuatorLinkFault) -> (CommandQueue.Outcome, event: BoundedText<64>?) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    // A message that began before the command was sent can only be a late answer to an earlier one.
    var isLate = link.hasBegunMessage
    var discardedCount = 0
    try link.send(address.coding.encode(command), by: deadline)
    while true {
      let message = try link.receive(by: deadline)
      let answer = try decode(message)
      if !isLate, answer.sequence == nil || answer.sequence == command.sequence {
        switch answer.outcome {
        case .done(let result): return (.success(result), answer.event)
        case .failed(let text): return (.failure(ActuatorFailure(.failed, text: text)), answer.event)
        }
      }
      isLate = false
      try discard(message, count: &discardedCount)
    }
  }

  /// Discards a late answer to an earlier command.
  ///
  /// - Throws: `badMessage` if the answer does not say which command it belongs to, or if there are too many.
  private func discard(_ message: [UInt8], count: inout Int) throws(ActuatorLinkFault) {
    guard let sequence = try decode(message).sequence, count < Self.discardLimit else {
      throw .badMessage(.outOfTurn)
    }
    count += 1
    notify(.discarded(address, sequence: sequence))
  }

  private func decode(_ message: [UInt8]) throws(ActuatorLinkFault) -> ActuatorAnswer {
    do throws(ActuatorMessageFault) { return try address.coding.answer(message) } catch { throw .badMessage(error) }
  }
}

/// The pause before an external actuator is started again: 100 ms, doubled each time up to 10 s. After it has run for 10 s,
/// the pause is 100 ms again.
///
/// That it says which commands it carries out is not enough: one that ends right after that would be started ten times a
/// second.
package struct RestartDelay {
  private static let leastMilliseconds: UInt64 = 100
  private static let greatestMilliseconds: UInt64 = 10_000
  private var milliseconds = leastMilliseconds

  /// Starts with the shortest pause.
  package init() {}

  /// Records that the actuator ended after that many milliseconds.
  package mutating func ended(afterMilliseconds running: UInt64) {
    if running >= Self.greatestMilliseconds { milliseconds = Self.leastMilliseconds }
  }

  /// Returns the pause before the next start, in milliseconds.
  package mutating func next() -> UInt64 {
    defer { milliseconds = min(2 * milliseconds, Self.greatestMilliseconds) }
    return milliseconds
  }
}

/// An event in the life of an external actuator. It may come from any thread.
package enum ActuatorNotice: Sendable, Equatable {
  /// The actuator runs, and carries out that many commands.
  case started(ActuatorAddress, commandCount: Int)
  /// The actuator could not be started again. The device tries again.
  case notStarted(ActuatorAddress, ActuatorStartFault)
  /// The actuator was lost, and is started again. The end is nil for a socket.
  case lost(ActuatorAddress, ActuatorFailure.Reason, ChildEnd?)
  /// An answer to an earlier command was discarded.
  case discarded(ActuatorAddress, sequence: UInt64)
}
