import Glibc

/// What ``Connection/receive(into:firstByteBy:wholeWithin:)`` got.
public struct ReceivedMessage: Sendable {
  /// Bytes of the message, 1 to 4096.
  public let byteCount: Int
  /// When the time that began with its first byte is over.
  public let deadline: Deadline
}

extension Connection {
  /// Receives one message.
  ///
  /// On a terminal, bytes that are no message are dropped until a second of silence; then the wait for the first byte
  /// goes on. On a socket they end the receiving side of the connection, while an answer can still be sent.
  ///
  /// - Parameters:
  ///   - buffer: at least 4096 bytes, the message goes to its start.
  ///   - firstByteMilliseconds: how long to wait for the message to begin.
  ///   - wholeMilliseconds: how long the message may take from its first byte on.
  /// - Returns: the number of bytes of the message, 1 to 4096.
  /// - Throws: ``TransportError/closed``, ``TransportError/timedOutWaiting``, ``TransportError/timedOutReading``,
  ///   ``TransportError/tooLong``, ``TransportError/truncated``, ``TransportError/emptyFrame`` (a serial line),
  ///   ``TransportError/cancelled`` after ``shutdown()``.
  public func receive(
    into buffer: inout MutableSpan<UInt8>,
    firstByteWithin firstByteMilliseconds: Int,
    wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> Int {
    let deadline = Deadline(afterMilliseconds: firstByteMilliseconds)
    return try receive(into: &buffer, firstByteBy: deadline, wholeWithin: wholeMilliseconds).byteCount
  }

  /// Receives one message, and says until when the time runs that began with its first byte.
  ///
  /// Parameters and errors are those of ``receive(into:firstByteWithin:wholeWithin:)``.
  public func receive(
    into buffer: inout MutableSpan<UInt8>, firstByteBy deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> ReceivedMessage {
    precondition(buffer.count >= Connection.maximumMessageByteCount)
    guard !isShutDown.load(ordering: .sequentiallyConsistent) else { throw .cancelled }
    guard !hasReceivingEnded.load(ordering: .relaxed) else { throw .closed }
    do throws(TransportError) {
      return try unsafe buffer.withUnsafeMutableBytes { bytes throws(TransportError) in
        switch framing {
        case .packets: try unsafe receivePacket(into: bytes, by: deadline, wholeWithin: wholeMilliseconds)
        case .stream: try unsafe receiveFrame(into: bytes, by: deadline, wholeWithin: wholeMilliseconds)
        }
      }
    } catch {
      // Waiting in vain loses nothing, nor does an empty frame; on a terminal, the next silence finds the way back.
      if error != .timedOutWaiting && error != .emptyFrame && terminal == nil {
        hasReceivingEnded.store(true, ordering: .relaxed)
      }
      throw isShutDown.load(ordering: .sequentiallyConsistent) ? .cancelled : error
    }
  }
}
