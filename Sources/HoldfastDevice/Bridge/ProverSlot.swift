import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The only place for a prover on a bridge. A prover takes it on the thread that accepted it, and is served on another one.
///
/// The rule is that of ``ConnectionTable``: a prover keeps the place while the device's last answer to it is an acceptance.
/// Otherwise a newcomer gets the place, but not within the prover's first `provingMilliseconds`. The first `tokenUnknown` starts
/// that time again, because an honest prover then sends its whole token. No newcomer gets the place while the device judges the
/// prover's message. Once a newcomer was refused only for that reason, the prover's next message ends the prover's connection,
/// unless the message before was accepted. A terminal takes another prover's place only once something has come from it.
final class ProverSlot: Sendable {
  /// A connection on which a byte arrives when a prover has taken the place. It ends when the place is closed.
  let bell: Connection
  private let knocker: Connection
  private let provingMilliseconds: Int
  private let state = Mutex(State())

  private struct State {
    var prover: Connection?
    /// Whether the prover has the place and is not served yet.
    var isWaiting = false
    /// The time from which a newcomer may take the place.
    var deadline = Deadline.never
    var isJudged = false
    var isProved = false
    /// Whether a newcomer would have got the place if no message had been judged at that moment.
    var isWanted = false
    var wasUnknown = false
    var isClosed = false

    /// Whether a newcomer may take the place, except while a message is judged.
    var isLosable: Bool { !isProved && deadline.hasPassed }
  }

  /// Makes an empty place.
  ///
  /// - Throws: a `TransportError` if the process has no descriptors left.
  init(provingMilliseconds: Int) throws(TransportError) {
    self.provingMilliseconds = provingMilliseconds
    (bell, knocker) = try Connection.pair()
  }

  /// Gives a newcomer the place. If another prover has it and may lose it, that prover's connection is ended.
  func take(_ newcomer: Connection) -> Admission {
    let admission = state.withLock { state -> Admission in
      guard !state.isClosed else { return .refused }
      let wasWaiting = state.isWaiting
      if let prover = state.prover {
        guard newcomer.terminal == nil || newcomer.hasArrived else { return .ignored }
        guard state.isLosable else { return .refused }
        guard !state.isJudged else {
          state.isWanted = true
          return .refused
        }
        // The thread that serves this prover notices the end of the connection.
        prover.shutdown()
      }
      state = State(prover: newcomer, isWaiting: true, deadline: Deadline(afterMilliseconds: provingMilliseconds))
      return wasWaiting ? .inPlaceOfUnserved : .admitted
    }
    if admission == .admitted || admission == .inPlaceOfUnserved {
      let ring: [UInt8] = [1]
      try? knocker.send(ring.span, timeoutMilliseconds: 0)
    }
    return admission
  }

  /// Returns the prover that took the place and is not served yet; nil if there is none any more.
  func next() -> Connection? {
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    var span = buffer.mutableSpan
    _ = try? bell.receive(into: &span, firstByteWithin: 0, wholeWithin: 0)
    return state.withLock { state in
      guard state.isWaiting else { return nil }
      state.isWaiting = false
      return state.prover
    }
  }

  /// Keeps the place of a prover while the device judges its message. Returns false if the prover has lost it already, or loses
  /// it now.
  func beginJudging(_ prover: Connection) -> Bool {
    state.withLock { state in
      guard state.prover === prover else { return false }
      if state.isWanted, state.isLosable {
        prover.shutdown()
        state = State(isClosed: state.isClosed)
        return false
      }
      state.isJudged = true
      return true
    }
  }

  /// Records that the device has answered a prover's message.
  func endJudging(_ prover: Connection, _ judgement: Judgement) {
    state.withLock { state in
      guard state.prover === prover else { return }
      state.isJudged = false
      switch judgement {
      case .accepted: (state.isProved, state.isWanted) = (true, false)
      case .tokenUnknown where !state.wasUnknown:
        state.wasUnknown = true
        state.deadline = Deadline(afterMilliseconds: provingMilliseconds)
      case .tokenUnknown, .other: state.isProved = false
      case .noVerdict: break
      }
    }
  }

  /// Returns the standing of the prover, if it is on that Bluetooth host and connected over Low Energy.
  func standing(of host: BluetoothAddress) -> LinkStanding {
    state.withLock { state in
      guard let prover = state.prover, prover.isLowEnergy, prover.peer == .bluetooth(host) else { return .absent }
      if state.isProved || state.isJudged { return .proved }
      return .connected(
        milliseconds: provingMilliseconds - min(state.deadline.remainingMilliseconds, provingMilliseconds))
    }
  }

  /// Frees the place after a prover was served. Returns false if a newcomer had taken it.
  func leave(_ prover: Connection) -> Bool {
    state.withLock { state in
      guard state.prover === prover else { return false }
      state = State(isClosed: state.isClosed)
      return true
    }
  }

  /// Ends the connection of the prover that has the place, and refuses every prover from then on.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.prover?.shutdown()
    }
    bell.shutdown()
  }
}

/// The result of a newcomer's request for the place.
enum Admission {
  case admitted
  /// The newcomer took the place of another prover that was not served yet. That prover appears in no other notice.
  case inPlaceOfUnserved
  case refused
  /// The newcomer is a terminal from which nothing has come: it is open whether or not anybody uses it.
  case ignored
}

/// The outcome that a bridge can read from a device's answer. The answer comes over the line, so no prover can forge it.
enum Judgement {
  /// A round, or a user's activation or unlocking, was accepted.
  case accepted
  case tokenUnknown
  /// A verdict with another status.
  case other
  /// The answer is no verdict: the next challenge, or an answer to mail.
  case noVerdict

  init(_ message: [UInt8]) {
    do throws(EncodingFault) {
      switch try VerdictMessage(message.span).status {
      case .accepted: self = .accepted
      case .tokenUnknown: self = .tokenUnknown
      default: self = .other
      }
    } catch {
      self = Judgement.isUserReply(message) ? .accepted : .noVerdict
    }
  }

  /// Returns whether a message grants or ends an activation, or unlocks a user. Each of these takes a right code.
  private static func isUserReply(_ message: [UInt8]) -> Bool {
    do throws(EncodingFault) {
      _ = try ActivationReply(message.span)
      return true
    } catch { return false }
  }
}
