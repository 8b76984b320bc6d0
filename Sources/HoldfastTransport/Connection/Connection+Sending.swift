import CBlueZ
import Glibc

extension Connection {
  /// Sends one message.
  ///
  /// - Parameters:
  ///   - message: 1 to 4096 bytes.
  ///   - timeoutMilliseconds: how long a peer that does not read may hold this up.
  /// - Throws: ``TransportError/tooLong`` or ``TransportError/truncated`` for a message of another size, with nothing sent;
  ///   ``TransportError/overPeerLimit`` where the peer takes only shorter packets; ``TransportError/timedOutSending``;
  ///   ``TransportError/closed`` where the peer is gone; ``TransportError/cancelled`` after ``shutdown()``. A stream on which part of a message was sent accepts no other.
  public func send(_ message: Span<UInt8>, timeoutMilliseconds: Int) throws(TransportError) {
    try send(message, by: Deadline(afterMilliseconds: timeoutMilliseconds))
  }

  /// Sends one message of 1 to 4096 bytes before `deadline`. Errors are those of ``send(_:timeoutMilliseconds:)``.
  public func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    guard message.count <= Connection.maximumMessageByteCount else { throw .tooLong }
    guard message.count > 0 else { throw .truncated }
    guard !isShutDown.load(ordering: .sequentiallyConsistent) else { throw .cancelled }
    guard !hasSendingEnded.load(ordering: .relaxed) else { throw .closed }
    switch framing {
    case .packets:
      _ = try unsafe message.withUnsafeBytes { bytes throws(TransportError) in
        try unsafe write(bytes, by: deadline)
      }
    case .stream:
      try sendFrame(message, by: deadline)
    }
  }

  /// Sends an empty frame, on a serial line alone. Errors are those of ``send(_:timeoutMilliseconds:)``.
  public func sendEmptyFrame(by deadline: Deadline) throws(TransportError) {
    precondition(isSerial)
    guard !isShutDown.load(ordering: .sequentiallyConsistent) else { throw .cancelled }
    guard !hasSendingEnded.load(ordering: .relaxed) else { throw .closed }
    try sendFrame(Span(), by: deadline)
  }

  private func sendFrame(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    var frame = [UInt8](repeating: 0, count: 2 + message.count)
    frame[0] = UInt8(truncatingIfNeeded: message.count >> 8)
    frame[1] = UInt8(truncatingIfNeeded: message.count)
    for index in message.indices { frame[2 + index] = message[index] }
    let span = frame.span
    try unsafe span.withUnsafeBytes { bytes throws(TransportError) in
      var sentCount = 0
      do throws(TransportError) {
        while sentCount < bytes.count {
          sentCount += try unsafe write(UnsafeRawBufferPointer(rebasing: bytes[sentCount...]), by: deadline)
        }
      } catch {
        if sentCount > 0 { hasSendingEnded.store(true, ordering: .relaxed) }
        throw error
      }
    }
  }

  /// Hands as many of `bytes` to the operating system as it takes at once, at least one; all of them on packets.
  private func write(_ bytes: UnsafeRawBufferPointer, by deadline: Deadline) throws(TransportError) -> Int {
    while true {
      let count =
        if terminal == nil {
          unsafe Glibc.send(file.descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
        } else {
          unsafe Glibc.write(file.descriptor, bytes.baseAddress, bytes.count)
        }
      if count > 0 { return count }
      switch errno {
      case EINTR: continue
      case _ where count == 0 || errno == EAGAIN: try wait(for: POLLOUT, until: deadline, orThrow: .timedOutSending)
      case let code:
        throw isShutDown.load(ordering: .sequentiallyConsistent) ? .cancelled : TransportError(errno: code)
      }
    }
  }
}
