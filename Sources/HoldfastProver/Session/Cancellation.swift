import HoldfastLinux
import HoldfastTransport
import Synchronization

/// A way to end a proof from another thread or task.
///
/// Whatever the device has already received, it may still act upon: a proof that was cancelled after it was sent has an unknown
/// outcome.
public final class Cancellation: Sendable {
  private struct State {
    var isCancelled = false
    var channel: (any MessageChannel)?
    /// Ends an attempt to connect.
    var wakeUp: WakeUp?
  }

  private let state = Mutex(State())

  /// Creates a cancellation that has not happened.
  public init() {}

  /// Whether ``cancel()`` was called.
  public var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Ends the proof: its call throws ``ProverError/cancelled``. It may be called at any time, any number of times.
  public func cancel() {
    state.withLock { state in
      state.isCancelled = true
      state.channel?.shutdown()
      state.wakeUp?.raise()
    }
  }

  /// Returns a wake-up that is raised once this is cancelled.
  func wakeUp() throws(TransportError) -> WakeUp {
    let made = try makeWakeUp()
    return state.withLock { state in
      let wakeUp = state.wakeUp ?? made
      state.wakeUp = wakeUp
      if state.isCancelled { wakeUp.raise() }
      return wakeUp
    }
  }

  /// Ends `channel` when this is cancelled, or at once if it already is.
  func end(_ channel: any MessageChannel) {
    state.withLock { state in
      state.channel = channel
      if state.isCancelled { channel.shutdown() }
    }
  }
}
