import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// Carries messages between one prover and the line. It reads one end at a time: a prover's message once the hardware has
/// answered the one before, and each message whole before its first byte is passed on.
struct Relay {
  let prover: Connection
  let place: ProverPlace
  let timing: BridgeTiming
  /// Messages of the hardware that were passed on.
  private(set) var messageCount: UInt64 = 0
  private var turn = Turn.asking(isAgain: false)
  /// When the turn is over.
  private var deadline = Deadline.never
  /// How many messages the hardware may still send in this round: M1 after an empty frame, M3 and M1 after M2.
  private var dueCount = 0
  /// Whether the prover itself, on a serial line of its own, asked for a fresh challenge.
  private var isAskedByProver = false

  /// Who has to speak.
  private enum Turn: Equatable {
    /// The hardware: the answer to an empty frame.
    case asking(isAgain: Bool)
    /// The hardware: a message.
    case judging
    /// The prover.
    case answering
  }

  /// How a prover's connection ends.
  enum Ending: Equatable {
    /// Without a word: the prover is gone, or the last word was said.
    case silent
    case refused(Status)
  }

  init(prover: Connection, place: ProverPlace, timing: BridgeTiming) {
    self.prover = prover
    self.place = place
    self.timing = timing
  }

  /// Serves the prover to the end of its connection. Throws what is wrong with the line.
  mutating func run(over line: inout HardwareLine) throws(HardwareFault) -> Ending {
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

  private mutating func ask(line: inout HardwareLine, isAgain: Bool = false) throws(HardwareFault) {
    try line.ask(isAgain: isAgain)
    begin(.asking(isAgain: isAgain), milliseconds: timing.freshMilliseconds)
  }

  private mutating func begin(_ turn: Turn, milliseconds: Int) {
    self.turn = turn
    deadline = Deadline(afterMilliseconds: milliseconds)
  }

  /// The time of a turn has passed.
  private mutating func endTurn(line: inout HardwareLine) throws(HardwareFault) -> Ending? {
    switch turn {
    case .asking(false): try ask(line: &line, isAgain: true)
    case .asking(true), .judging: throw .silent
    case .answering: return .refused(.challengeExpired)
    }
    return nil
  }

  /// Something came on the line.
  private mutating func passOn(from line: inout HardwareLine) throws(HardwareFault) -> Ending? {
    switch try line.take() {
    case .nothing:
      return deadline.hasPassed ? try endTurn(line: &line) : nil
    case .fresh:
      // Without having been asked: the challenge that the prover has is void.
      guard case .asking = turn else { return .refused(.challengeExpired) }
      dueCount = 1
      begin(.judging, milliseconds: timing.judgingMilliseconds)
      return isAskedByProver && !sayFresh() ? .silent : nil
    case .message(let message):
      if case .asking = turn { return deadline.hasPassed ? try endTurn(line: &line) : nil }
      guard dueCount > 0 else { return .refused(.challengeExpired) }
      dueCount -= 1
      place.endJudging(prover, Judgement(message))
      guard send(message) else { return .silent }
      begin(.answering, milliseconds: timing.answerMilliseconds)
      return message == Bridge.refusal(.malformed) ? .silent : nil
    }
  }

  /// The prover has its turn, and something came from it.
  private mutating func passOn(to line: inout HardwareLine) throws(HardwareFault) -> Ending? {
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

  /// Says whether the prover has taken it.
  private mutating func send(_ message: [UInt8]) -> Bool {
    do throws(TransportError) {
      try prover.send(message.span, timeoutMilliseconds: timing.sendMilliseconds)
    } catch { return false }
    messageCount += 1
    return true
  }

  /// Tells the prover that what follows is fresh.
  private func sayFresh() -> Bool {
    do throws(TransportError) {
      try prover.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
      return true
    } catch { return false }
  }
}
