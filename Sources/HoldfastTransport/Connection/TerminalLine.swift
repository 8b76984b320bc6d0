import Synchronization

/// What a connection on a terminal needs besides the file: a terminal has no end that can be shut, and no packets.
final class TerminalLine: Sendable {
  /// How long the line must be silent after bytes that are no message.
  let silenceMilliseconds: Int
  /// Wakes whoever waits for the line.
  let wake: Signal
  /// Raised when the connection is gone, so that the listener can give the line to the next.
  let turn: Signal?
  /// When the silence that is waited for will be over; nil while messages are read.
  private let silence = Mutex<Deadline?>(nil)

  init(silenceMilliseconds: Int, turn: Signal? = nil) throws(TransportError) {
    self.silenceMilliseconds = silenceMilliseconds
    self.turn = turn
    wake = try Signal()
  }

  /// The moment at which a silence that begins now is long enough.
  var nextSilence: Deadline {
    Deadline(afterMilliseconds: silenceMilliseconds)
  }

  /// When bytes will be listened to again; nil where they are now.
  var silenceDeadline: Deadline? {
    get { silence.withLock { $0 } }
    set { silence.withLock { $0 = newValue } }
  }

  /// Listens to bytes again where the silence has been long enough. For whoever has just seen that nothing came.
  func endSilence() {
    silence.withLock { if let deadline = $0, deadline.hasPassed { $0 = nil } }
  }
}
