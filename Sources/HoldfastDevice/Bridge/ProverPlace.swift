import HoldfastTransport
import Synchronization

/// The one place of a bridge: a prover takes it on the thread that accepted it, and is served on another one.
final class ProverPlace: Sendable {
  /// Something arrives on it when a prover has taken the place, and it ends when the place is closed.
  let bell: Connection
  private let knocker: Connection
  private let state = Mutex(State())

  private struct State {
    var prover: Connection?
    var isWaiting = false
    var isClosed = false
  }

  /// Throws where the process has no descriptors left.
  init() throws(TransportError) {
    (bell, knocker) = try Connection.pair()
  }

  /// Says whether the place was free.
  func take(_ prover: Connection) -> Bool {
    let isTaken = state.withLock { state in
      guard state.prover == nil, !state.isClosed else { return false }
      (state.prover, state.isWaiting) = (prover, true)
      return true
    }
    if isTaken {
      let ring: [UInt8] = [1]
      try? knocker.send(ring.span, timeoutMilliseconds: 0)
    }
    return isTaken
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

  /// The prover has been served.
  func leave() { state.withLock { $0.prover = nil } }

  /// Ends the connection of whoever has the place, and lets nobody in any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.prover?.shutdown()
    }
    bell.shutdown()
  }
}
