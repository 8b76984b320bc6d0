import Glibc
import HoldfastCore
import HoldfastLinux

/// A moment of the monotonic clock by which something has to be done, such as `Deadline(afterMilliseconds: 500)`.
public typealias Deadline = HoldfastLinux.Deadline

/// Anything that carries messages of 1 to 4096 bytes between a prover and a device, whole and in order.
///
/// ``Connection`` is the channel over sockets, serial lines and Bluetooth. Another type that conforms carries the same protocol
/// over a transport of its own. A channel need not authenticate or encrypt anything. One thread may send while another receives.
public protocol MessageChannel: Sendable {
  /// Receives one message.
  ///
  /// - Parameters:
  ///   - deadline: the time by which the first byte must arrive.
  ///   - wholeMilliseconds: the maximum time from the first byte of the message to its last.
  /// - Returns: the message.
  /// - Throws: ``TransportError/timedOutWaiting`` after `deadline`, without losing bytes; ``TransportError/cancelled`` after
  ///   ``shutdown()``; ``TransportError/closed`` if the peer has ended the channel; any other error ends it.
  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage

  /// Sends one message of 1 to 4096 bytes.
  ///
  /// - Throws: ``TransportError/tooLong`` or ``TransportError/truncated`` for a message of another size;
  ///   ``TransportError/timedOutSending`` after `deadline`; ``TransportError/closed`` if the peer has ended the channel;
  ///   ``TransportError/cancelled`` after ``shutdown()``.
  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError)

  /// Ends the channel. A thread that is sending or receiving on it wakes with ``TransportError/cancelled`` or
  /// ``TransportError/closed``.
  ///
  /// It may be called from any thread, any number of times.
  func shutdown()

  /// Returns whether the channel ends within `milliseconds`. It returns at once when the channel ends, if it can tell, and if the
  /// time is zero or less.
  ///
  /// A device calls it before it answers a peer whose proofs keep failing. By default, it waits and returns false.
  func isEnded(withinMilliseconds milliseconds: Int) -> Bool

  /// Waits up to `milliseconds` for the peer to read the last message, if ending the channel could lose it. By default, it
  /// returns at once.
  func linger(milliseconds: Int)

  /// Answers a peer that asked to begin again (``TransportError/emptyFrame``). Only a serial line has such a request.
  func sendEmptyFrame(by deadline: Deadline) throws(TransportError)

  /// The other end, as far as the operating system knows it. It is for logs only: it proves nothing. By default nil.
  var peer: Peer? { get }
}

extension MessageChannel {
  /// Waits for the time, not at all if it is zero or less, and returns false.
  public func isEnded(withinMilliseconds milliseconds: Int) -> Bool {
    _ = poll(nil, 0, CInt(clamping: max(milliseconds, 0)))
    return false
  }

  /// Returns at once.
  public func linger(milliseconds: Int) {}

  /// Throws ``TransportError/truncated``, since a message has at least one byte.
  public func sendEmptyFrame(by deadline: Deadline) throws(TransportError) { throw .truncated }

  /// Nil, because nothing is known about the other end.
  public var peer: Peer? { nil }
}

/// A message that a ``MessageChannel`` has received.
public struct ReceivedMessage: Sendable {
  /// The message, 1 to 4096 bytes.
  public let bytes: [UInt8]
  /// The time from its first byte to its last, in milliseconds; 0 where messages arrive whole.
  public let transferMilliseconds: Int

  /// Creates a message.
  public init(_ bytes: [UInt8], transferMilliseconds: Int = 0) {
    (self.bytes, self.transferMilliseconds) = (bytes, transferMilliseconds)
  }
}

extension Connection: MessageChannel {
  /// Receives one message.
  ///
  /// On a terminal, bytes that are not a message are dropped until the line has been silent for a second; then the wait for the
  /// first byte goes on. On a socket, such bytes end the receiving direction of the connection; an answer can still be sent.
  ///
  /// - Throws: ``TransportError/closed``, ``TransportError/timedOutWaiting``, ``TransportError/timedOutReading``,
  ///   ``TransportError/tooLong``, ``TransportError/truncated``, ``TransportError/emptyFrame`` (a serial line),
  ///   ``TransportError/cancelled`` after ``shutdown()``.
  public func receive(
    by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> ReceivedMessage {
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    var span = buffer.mutableSpan
    let arrival = try receive(into: &span, firstByteBy: deadline, wholeWithin: wholeMilliseconds)
    return ReceivedMessage(
      Array(buffer[..<arrival.byteCount]),
      transferMilliseconds: max(wholeMilliseconds - arrival.deadline.remainingMilliseconds, 0))
  }
}

/// A source of channels: it accepts peers of a transport.
///
/// ``Listener`` listens at an ``Endpoint``. Another type that conforms lets a device serve a transport of its own.
public protocol ChannelListener: Sendable {
  /// Waits for the next peer.
  ///
  /// - Throws: ``TransportError/cancelled`` after ``cancel()``; ``TransportError/closed`` or ``TransportError/notFound`` if no
  ///   peer can come any more; another error if one peer could not be accepted.
  func acceptChannel() throws(TransportError) -> any MessageChannel

  /// Ends every current and future ``acceptChannel()``. It may be called from any thread, any number of times.
  func cancel()

  /// Stops listening, after ``cancel()``, and frees what the listener holds.
  func close()
}

extension Listener: ChannelListener {
  /// Waits for the next peer and accepts it, as ``accept()`` does.
  public func acceptChannel() throws(TransportError) -> any MessageChannel { try accept() }
}
