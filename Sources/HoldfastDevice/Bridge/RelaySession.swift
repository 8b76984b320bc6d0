import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// A relay of messages between one prover and the line. It reads one end at a time: a prover's message only after the
/// hardware has answered the previous one. It passes on the first byte of a message only when the whole message has arrived.
struct RelaySession {
  let prover: Connection
  let place: ProverSlot
  let timing: BridgeTiming
  /// The number of hardware messages that were passed on.
  private(set) var messageCount: UInt64 = 0
  private var turn = Turn.asking
  /// The time at which the turn is over.
  private var deadline = Deadline.never
  /// The number of messages that the hardware may still send in this round: M1 after an empty frame, M3 and M1 after M2.
  private var dueCount = 0
  /// Whether the prover, on a separate serial line, has asked for a fresh challenge itself.
  private var isAskedByProver = false
  /// The challenge that is passed on if no other comes while the turn is settling.
  private var heldChallenge: [UInt8]?

  /// The end that the relay waits for.
  private enum Turn: Equatable {
    /// The relay waits for the hardware's answer to an empty frame.
    case asking
    /// An empty frame has been answered, and the relay waits for the answers to others: each makes the challenge before it void.
    case settling
    /// The relay waits for a message from the hardware.
    case judging
    /// The relay waits for a message from the prover.
    case answering
  }

  /// The way in which a prover's connection ends.
  enum Ending: Equatable {
    /// The connection ends without another message: the prover disconnected, or has its last answer.
    case silent
    case refused(Status)
  }

  init(prover: Connection, place: ProverSlot, timing: BridgeTiming) {
    self.prover = prover
    self.place = place
    self.timing = timing
  }

  /// Serves the prover until its connection ends.
  ///
  /// - Throws: a ``HardwareFault`` if the line fails.
  mutating func run(over line: inout DeviceLine) throws(HardwareFault) -> Ending {
    try ask(line: &line)
    while true {
      let other: Connection.Watch = turn == .answering ? .arrival(on: prover) : .end(of: prover)
      let (hasArrived, isOther) = try line.wait(or: other, until: deadline)
      let ending: Ending? =
        if hasArrived { try passOn(from: &line) } else if isOther {
          turn == .answering ? try passOn(to: &line) : .silent
        } else { try endTurn(line: &line) }
      if let ending { return ending }
    }
  }

  private mutating func ask(line: inout DeviceLine) throws(HardwareFault) {
    try line.ask()
    (turn, deadline) = (.asking, line.answerDeadline)
  }

  private mutating func begin(_ turn: Turn, milliseconds: Int) {
    self.turn = turn
    deadline = Deadline(afterMilliseconds: milliseconds)
  }

  /// Begins a round behind the answer to the last empty frame.
  private mutating func beginRound() -> Ending? {
    dueCount = 1
    begin(.judging, milliseconds: timing.judgingMilliseconds)
    guard let challenge = heldChallenge else { return nil }
    heldChallenge = nil
    return passOn(challenge)
  }

  /// Handles the end of a turn's time.
  private mutating func endTurn(line: inout DeviceLine) throws(HardwareFault) -> Ending? {
    switch turn {
    case .asking:
      try line.askAgain()
      deadline = line.answerDeadline
      return nil
    case .settling:
      line.forgetQuestions()
      return beginRound()
    case .judging: throw .silent
    case .answering: return .refused(.challengeExpired)
    }
  }

  /// Handles an arrival on the line, and passes a message on to the prover.
  private mutating func passOn(from line: inout DeviceLine) throws(HardwareFault) -> Ending? {
    switch try line.take() {
    case .nothing:
      return deadline.hasPassed ? try endTurn(line: &line) : nil
    case .fresh: return refresh(from: line)
    case .message(let message):
      guard turn == .asking || turn == .settling else { return passOn(message) }
      if turn == .settling { heldChallenge = message } else { deadline = line.answerDeadline }
      return deadline.hasPassed ? try endTurn(line: &line) : nil
    }
  }

  /// Handles the answer to an empty frame.
  private mutating func refresh(from line: DeviceLine) -> Ending? {
    switch turn {
    case .asking:
      if isAskedByProver, !sayFresh() { return .silent }
      begin(.settling, milliseconds: timing.settlingMilliseconds)
    case .settling: heldChallenge = nil
    // The hardware sent this without being asked: the prover's challenge is void.
    case .judging, .answering: return .refused(.challengeExpired)
    }
    return line.isAsked ? nil : beginRound()
  }

  /// Passes a message of the hardware on to the prover.
  private mutating func passOn(_ message: [UInt8]) -> Ending? {
    guard dueCount > 0 else { return .refused(.challengeExpired) }
    dueCount -= 1
    place.endJudging(prover, Judgement(message))
    guard send(message) else { return .silent }
    guard message != Bridge.refusal(.malformed) else { return .silent }
    // The challenge that follows a verdict answers no message. Until it is there, none of the prover's is passed on.
    if dueCount > 0, (try? VerdictMessage(message.span)) != nil {
      begin(.judging, milliseconds: timing.judgingMilliseconds)
    } else {
      begin(.answering, milliseconds: timing.answerMilliseconds)
    }
    return nil
  }

  /// Receives the prover's message and passes it on to the line.
  private mutating func passOn(to line: inout DeviceLine) throws(HardwareFault) -> Ending? {
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    var span = buffer.mutableSpan
    let byteCount: Int
    do throws(TransportError) {
      byteCount = try prover.receive(
        into: &span, firstByteWithin: 0, wholeWithin: timing.messageMilliseconds)
    } catch {
      switch error {
      case .timedOutWaiting: return nil
      case .timedOutReading, .tooLong, .truncated: return .refused(.malformed)
      case .emptyFrame:
        isAskedByProver = true
        // Whoever sent it may be another prover, who has proved nothing.
        place.endJudging(prover, .other)
        try ask(line: &line)
        return nil
      default: return .silent
      }
    }
    guard place.beginJudging(prover) else { return .silent }
    try line.send(Array(buffer[..<byteCount]))
    dueCount = 2
    begin(.judging, milliseconds: timing.judgingMilliseconds)
    return nil
  }

  /// Sends a message to the prover. Returns whether the prover has taken it.
  private mutating func send(_ message: [UInt8]) -> Bool {
    do throws(TransportError) {
      try prover.send(message.span, timeoutMilliseconds: timing.sendMilliseconds)
    } catch { return false }
    messageCount += 1
    return true
  }

  /// Sends the prover an empty frame: the messages after it are fresh. Returns whether the prover has taken it.
  private func sayFresh() -> Bool {
    do throws(TransportError) {
      try prover.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
      return true
    } catch { return false }
  }
}
