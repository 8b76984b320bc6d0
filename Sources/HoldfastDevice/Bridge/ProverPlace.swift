import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The one place of a bridge: a prover takes it on the thread that accepted it, and is served on another one.
///
/// The rule is that of ``ConnectionTable``: a prover keeps the place while the device's last answer to it is an acceptance.
/// Otherwise a newcomer gets the place, but not within the prover's first `provingMilliseconds`, nor while the device judges
/// its message. The first `tokenUnknown` gives as long again, since an honest prover then sends its token as a whole.
final class ProverPlace: Sendable {
  /// Something arrives on it when a prover has taken the place, and it ends when the place is closed.
  let bell: Connection
  private let knocker: Connection
  private let provingMilliseconds: Int
  private let state = Mutex(State())

  private struct State {
    var prover: Connection?
    /// Whether the prover has the place and is not served yet.
    var isWaiting = false
    /// When a newcomer may have the place.
    var deadline = Deadline.never
    var isJudged = false
    var isProved = false
    var wasUnknown = false
    var isClosed = false
  }

  /// Throws where the process has no descriptors left.
  init(provingMilliseconds: Int) throws(TransportError) {
    self.provingMilliseconds = provingMilliseconds
    (bell, knocker) = try Connection.pair()
  }

  /// Gives a newcomer the place, if need be that of another one, which is ended.
  func take(_ newcomer: Connection) -> Admission {
    let admission = state.withLock { state -> Admission in
      guard !state.isClosed else { return .refused }
      let wasWaiting = state.isWaiting
      if let prover = state.prover {
        guard !state.isProved, !state.isJudged, state.deadline.hasPassed else { return .refused }
        // The thread that serves it finds out by itself.
        prover.shutdown()
      }
      state = State(prover: newcomer, isWaiting: true, deadline: Deadline(afterMilliseconds: provingMilliseconds))
      return wasWaiting ? .inPlaceOfUnserved : .admitted
    }
    if admission != .refused {
      let ring: [UInt8] = [1]
      try? knocker.send(ring.span, timeoutMilliseconds: 0)
    }
    return admission
  }

  /// The prover that took the place and is not served yet; nil where the bell rang for nobody.
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

  /// Keeps the place of a prover while the device judges its message; false when it was lost already.
  func beginJudging(_ prover: Connection) -> Bool {
    state.withLock { state in
      guard state.prover === prover else { return false }
      state.isJudged = true
      return true
    }
  }

  /// The device has answered a message of a prover.
  func endJudging(_ prover: Connection, _ judgement: Judgement) {
    state.withLock { state in
      guard state.prover === prover else { return }
      state.isJudged = false
      switch judgement {
      case .accepted: state.isProved = true
      case .tokenUnknown where !state.wasUnknown:
        state.wasUnknown = true
        state.deadline = Deadline(afterMilliseconds: provingMilliseconds)
      case .tokenUnknown, .other: state.isProved = false
      }
    }
  }

  /// How far the prover has come, where it is of that Bluetooth host and came by Low Energy.
  func standing(of host: BluetoothAddress) -> LinkStanding {
    state.withLock { state in
      guard let prover = state.prover, prover.isLowEnergy, prover.peer == .bluetooth(host) else { return .absent }
      if state.isProved || state.isJudged { return .proved }
      return .connected(
        milliseconds: provingMilliseconds - min(state.deadline.remainingMilliseconds, provingMilliseconds))
    }
  }

  /// A prover has been served; false when a newcomer had taken its place.
  func leave(_ prover: Connection) -> Bool {
    state.withLock { state in
      guard state.prover === prover else { return false }
      state = State(isClosed: state.isClosed)
      return true
    }
  }

  /// Ends the connection of the prover that has the place, and lets nobody in any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.prover?.shutdown()
    }
    bell.shutdown()
  }
}

/// The result of a newcomer's asking for the place.
enum Admission {
  case admitted
  /// Admitted in place of another prover, which was not served yet: no notice tells of that one.
  case inPlaceOfUnserved
  case refused
}

/// What a bridge can see of a device's answer: it comes over the line, so no prover can make it.
enum Judgement {
  /// A round, or a user's activation or unlocking, was accepted.
  case accepted
  case tokenUnknown
  case other

  init(_ message: [UInt8]) {
    do throws(EncodingFault) {
      switch try VerdictMessage(message.span).status {
      case .accepted: self = .accepted
      case .tokenUnknown: self = .tokenUnknown
      default: self = .other
      }
    } catch {
      self = Judgement.isUserReply(message) ? .accepted : .other
    }
  }

  /// Whether it grants or ends an activation, or unlocks a user: each takes a right code.
  private static func isUserReply(_ message: [UInt8]) -> Bool {
    do throws(EncodingFault) {
      _ = try UserReply(message.span)
      return true
    } catch { return false }
  }
}
