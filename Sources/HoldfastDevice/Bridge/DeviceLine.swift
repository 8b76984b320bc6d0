import HoldfastLinux
import HoldfastTransport

/// The bridge's end of the line, between two losses of it.
///
/// It counts its empty frames and their answers, because a prover can leave between the two.
struct DeviceLine {
  private var link: DeviceLink
  private let timing: BridgeTiming
  /// The number of empty frames that are not answered yet.
  private var questionCount = 0
  /// The time by which the last empty frame is to be answered. A prover that arrives before it sends no other.
  private(set) var answerDeadline = Deadline.never
  /// Whether the last empty frame repeated one that was not answered in time.
  private var isAskedAgain = false
  /// The time by which the hardware answers the last message; it answers no empty frame before that.
  private var busyDeadline = Deadline(afterMilliseconds: 0)

  /// The result of reading the line.
  enum Arrival {
    /// A repetition, or bytes that are dropped.
    case nothing
    /// The answer to an empty frame. A fresh challenge follows.
    case fresh
    case message([UInt8])
  }

  init(_ connection: Connection, timing: BridgeTiming) {
    link = DeviceLink(connection)
    self.timing = timing
  }

  /// Whether an empty frame is not answered yet.
  var isAsked: Bool { questionCount > 0 }

  /// Asks for a fresh challenge, unless an earlier request may still be answered in time.
  mutating func ask() throws(HardwareFault) {
    guard !isAsked || answerDeadline.hasPassed else { return }
    isAskedAgain = false
    try sendQuestion()
  }

  /// Asks once more, because the time for an answer is over.
  ///
  /// - Throws: `silent` if that was done before.
  mutating func askAgain() throws(HardwareFault) {
    guard !isAskedAgain else { throw .silent }
    isAskedAgain = true
    try sendQuestion()
  }

  /// Expects no further answers to empty frames that were sent.
  mutating func forgetQuestions() { questionCount = 0 }

  private mutating func sendQuestion() throws(HardwareFault) {
    do throws(TransportError) {
      try link.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
    } catch { throw .transport(error) }
    questionCount += 1
    answerDeadline = max(Deadline(afterMilliseconds: timing.freshMilliseconds), busyDeadline)
  }

  mutating func send(_ message: [UInt8]) throws(HardwareFault) {
    do throws(TransportError) {
      try link.connection.send(message.span, timeoutMilliseconds: timing.sendMilliseconds)
    } catch { throw .transport(error) }
    busyDeadline = Deadline(afterMilliseconds: timing.judgingMilliseconds)
  }

  /// Takes one message if it has begun to arrive.
  mutating func take() throws(HardwareFault) -> Arrival {
    do throws(TransportError) {
      let message = try link.receive(by: Deadline(afterMilliseconds: 0), wholeWithin: timing.frameMilliseconds)
      if !busyDeadline.hasPassed {
        // The hardware has answered, and comes to the empty frames.
        busyDeadline = Deadline(afterMilliseconds: 0)
        answerDeadline = min(answerDeadline, Deadline(afterMilliseconds: timing.freshMilliseconds))
      }
      return .message(message)
    } catch {
      switch error {
      case .timedOutWaiting: return .nothing
      case .emptyFrame:
        questionCount = max(questionCount - 1, 0)
        // An answer shows that the hardware is not silent. Any further answers follow soon; otherwise their questions were lost.
        isAskedAgain = false
        answerDeadline = min(answerDeadline, Deadline(afterMilliseconds: timing.settlingMilliseconds))
        return .fresh
      default: throw .transport(error)
      }
    }
  }

  /// Waits until bytes arrive on the line, or for `other`. Returns which of them happened.
  func wait(
    or other: Connection.Watch, until deadline: Deadline
  ) throws(HardwareFault) -> (hasArrived: Bool, other: Bool) {
    do throws(TransportError) {
      let (hasArrived, other) = try Connection.wait(for: .arrival(on: link.connection), or: other, until: deadline)
      return (hasArrived, other)
    } catch { throw .transport(error) }
  }
}
