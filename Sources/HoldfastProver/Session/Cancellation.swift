import HoldfastLinux
import HoldfastTransport
import Synchronization

/// A way to end proofs from another thread or task. One cancellation may serve any number of proofs, also at once.
///
/// The device may still act upon a request that it has received: a proof that was cancelled after it was sent has an unknown
/// outcome.
public final class Cancellation: Sendable {
  private struct State {
    var isCancelled = false
    /// The channels of the proofs that are running, each under a number.
    var channels: [UInt64: any MessageChannel] = [:]
    var lastNumber: UInt64 = 0
    /// Ends the attempts to connect.
    var wakeUp: WakeUp?
  }

  private let state = Mutex(State())

  /// Creates a cancellation that has not happened.
  public init() {}

  /// Whether ``cancel()`` was called.
  public var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Ends the proofs that are running, and those that begin later: their calls throw ``ProverError/cancelled``. A proof that has
  /// ended, and its channel, are left alone. It may be called at any time, any number of times.
  public func cancel() {
    state.withLock { state in
      state.isCancelled = true
      for channel in state.channels.values { channel.shutdown() }
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

  /// Ends `channel` when this is cancelled, or at once if it already is, for as long as the result exists.
  func end(_ channel: any MessageChannel) -> Watch {
    state.withLock { state in
      state.lastNumber += 1
      state.channels[state.lastNumber] = channel
      if state.isCancelled { channel.shutdown() }
      return Watch(cancellation: self, number: state.lastNumber)
    }
  }

  /// The hold of a cancellation on the channel of a proof that is running.
  final class Watch: Sendable {
    private let cancellation: Cancellation
    private let number: UInt64

    fileprivate init(cancellation: Cancellation, number: UInt64) {
      (self.cancellation, self.number) = (cancellation, number)
    }

    deinit { cancellation.state.withLock { _ = $0.channels.removeValue(forKey: number) } }
  }
}
