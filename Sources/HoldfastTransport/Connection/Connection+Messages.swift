import CBlueZ
import Glibc
import HoldfastLinux

extension Connection {
  /// Reads the two-byte length, rejects an impossible length before reading further, then reads the message.
  func receiveFrame(
    into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> MessageArrival {
    while true {
      try dropUntilSilence(by: deadline)
      var length: UInt16 = 0
      var whole = Deadline.never
      let isComplete = try unsafe withUnsafeMutableBytes(of: &length) { prefix throws(TransportError) in
        let count = try unsafe read(into: prefix, by: deadline)
        whole = Deadline(afterMilliseconds: wholeMilliseconds)
        return try unsafe fill(UnsafeMutableRawBufferPointer(rebasing: prefix[count...]), by: whole)
      }
      guard isComplete else { continue }
      let byteCount = Int(UInt16(bigEndian: length))
      guard byteCount > 0 else { throw isSerial ? .emptyFrame : .truncated }
      guard byteCount <= Connection.maximumMessageByteCount else {
        guard let terminal else { throw .tooLong }
        terminal.silenceDeadline = terminal.nextSilence
        continue
      }
      guard try unsafe fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount]), by: whole) else { continue }
      return MessageArrival(byteCount: byteCount, deadline: whole)
    }
  }

  /// Reads the rest of a message that has begun.
  ///
  /// Returns false if a terminal falls silent within the message: the next byte then begins another message.
  private func fill(_ rest: UnsafeMutableRawBufferPointer, by whole: Deadline) throws(TransportError) -> Bool {
    var filledCount = 0
    while filledCount < rest.count {
      let silence = terminal?.nextSilence ?? .never
      do throws(TransportError) {
        filledCount += try unsafe read(
          into: UnsafeMutableRawBufferPointer(rebasing: rest[filledCount...]), by: min(whole, silence))
      } catch .timedOutWaiting {
        if silence <= whole && silence.hasPassed { return false }
        terminal?.silenceDeadline = silence
        throw .timedOutReading
      } catch .closed {
        throw .truncated
      }
      // The deadline also applies to a sender whose bytes never stop arriving.
      if filledCount < rest.count && whole.hasPassed {
        terminal?.silenceDeadline = terminal?.nextSilence
        throw .timedOutReading
      }
    }
    return true
  }

  /// Drops the input of a terminal that sent bytes other than messages, until it has been silent long enough.
  private func dropUntilSilence(by deadline: Deadline) throws(TransportError) {
    guard let terminal else { return }
    while let silence = terminal.silenceDeadline {
      let isWaited = try unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) {
        dropped throws(TransportError) in
        do throws(TransportError) {
          _ = try unsafe read(into: dropped, by: min(deadline, silence))
          return false
        } catch .timedOutWaiting {
          return true
        }
      }
      if !isWaited {
        terminal.silenceDeadline = terminal.nextSilence
        if deadline.hasPassed { throw .timedOutWaiting }
      } else if silence.hasPassed {
        terminal.silenceDeadline = nil
      } else {
        throw .timedOutWaiting
      }
    }
  }

  /// Waits for input and reads what is available, at least one byte.
  ///
  /// - Throws: ``TransportError/timedOutWaiting``; ``TransportError/closed`` at the end of the stream.
  private func read(into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline) throws(TransportError) -> Int {
    var waits = RepeatedWait(on: file)
    while true {
      let count = unsafe Glibc.read(file.descriptor, buffer.baseAddress, buffer.count)
      if count > 0 { return count }
      if count == 0 { throw .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        try waits.begin()
        try wait(for: POLLIN, until: deadline, orThrow: .timedOutWaiting)
      case let code: throw TransportError(errno: code)
      }
    }
  }

  /// Receives one packet, which is one message. The bytes of a packet above 4096 are never copied out of the kernel.
  func receivePacket(
    into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> MessageArrival {
    var hasSeenEnd = false
    var waits = RepeatedWait(on: file)
    while true {
      let (count, isCut) = unsafe readPacket(into: buffer)
      if count > 0 {
        guard !isCut else { throw .tooLong }
        return MessageArrival(byteCount: count, deadline: Deadline(afterMilliseconds: wholeMilliseconds))
      }
      // Linux reports the end of a packet socket once before packets that arrived earlier: by a read of no bytes on Bluetooth, by
      // a reset on other sockets.
      if count == 0 {
        // A packet without bytes reads like the end of the connection. The difference is that the peer is still connected.
        guard try file.isHungUp() else { throw .truncated }
        guard !hasSeenEnd else { throw .closed }
        hasSeenEnd = true
        continue
      }
      switch errno {
      case EINTR: continue
      // A Bluetooth link that has ended reports one reset; after that, no further event arrives.
      case EAGAIN where hasSeenEnd: throw .closed
      case EAGAIN:
        try waits.begin()
        try wait(for: POLLIN, until: deadline, orThrow: .timedOutWaiting)
      case ECONNRESET where !hasSeenEnd: hasSeenEnd = true
      case let code: throw TransportError(errno: code)
      }
    }
  }

  /// Receives one packet, and reports whether it was cut. The kernel closes descriptors that a peer sends with it.
  ///
  /// Source: recvmsg(2), MSG_TRUNC.
  private func readPacket(into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, isCut: Bool) {
    var part = unsafe iovec(iov_base: buffer.baseAddress, iov_len: Connection.maximumMessageByteCount)
    return unsafe withUnsafeMutablePointer(to: &part) { part in
      var header = unsafe msghdr()
      unsafe header.msg_iov = part
      unsafe header.msg_iovlen = 1
      let count = unsafe recvmsg(file.descriptor, &header, CInt(MSG_DONTWAIT))
      return unsafe (count, header.msg_flags & CInt(MSG_TRUNC) != 0)
    }
  }
}

/// The result of ``Connection/receive(into:firstByteBy:wholeWithin:)``.
package struct MessageArrival: Sendable {
  /// The number of bytes of the message, 1 to 4096.
  package let byteCount: Int
  /// The end of the time for the whole message, which began with its first byte.
  package let deadline: Deadline
}

extension Connection {
  /// Receives one message.
  ///
  /// On a terminal, bytes that are not a message are dropped until the line has been silent for a second; then the wait for the
  /// first byte goes on. On a socket, such bytes end the receiving direction of the connection; an answer can still be sent.
  ///
  /// - Parameters:
  ///   - buffer: at least 4096 bytes; the message is written to its start.
  ///   - firstByteMilliseconds: the maximum wait for the message to begin.
  ///   - wholeMilliseconds: the maximum time from the first byte of the message to its last.
  /// - Returns: the number of bytes of the message, 1 to 4096.
  /// - Throws: ``TransportError/closed``, ``TransportError/timedOutWaiting``, ``TransportError/timedOutReading``,
  ///   ``TransportError/tooLong``, ``TransportError/truncated``, ``TransportError/emptyFrame`` (a serial line),
  ///   ``TransportError/cancelled`` after ``shutdown()``.
  package func receive(
    into buffer: inout MutableSpan<UInt8>,
    firstByteWithin firstByteMilliseconds: Int,
    wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> Int {
    let deadline = Deadline(afterMilliseconds: firstByteMilliseconds)
    return try receive(into: &buffer, firstByteBy: deadline, wholeWithin: wholeMilliseconds).byteCount
  }

  /// Receives one message, and returns the deadline that began with its first byte.
  ///
  /// Parameters and errors are those of ``receive(into:firstByteWithin:wholeWithin:)``.
  package func receive(
    into buffer: inout MutableSpan<UInt8>, firstByteBy deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> MessageArrival {
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
      // Neither a timeout before the first byte nor an empty frame loses bytes. A terminal resynchronises at the next silence.
      if error != .timedOutWaiting && error != .emptyFrame && terminal == nil {
        hasReceivingEnded.store(true, ordering: .relaxed)
      }
      throw isShutDown.load(ordering: .sequentiallyConsistent) ? .cancelled : error
    }
  }

  /// Sends one message.
  ///
  /// - Parameters:
  ///   - message: 1 to 4096 bytes.
  ///   - timeoutMilliseconds: the maximum time for which a peer that does not read can block this call.
  /// - Throws: the errors of ``send(_:by:)``.
  package func send(_ message: Span<UInt8>, timeoutMilliseconds: Int) throws(TransportError) {
    try send(message, by: Deadline(afterMilliseconds: timeoutMilliseconds))
  }

  /// Sends one message of 1 to 4096 bytes before `deadline`.
  ///
  /// - Throws: ``TransportError/tooLong`` or ``TransportError/truncated`` for a message of another size, with nothing sent;
  ///   ``TransportError/overPeerLimit`` if the peer accepts only shorter packets; ``TransportError/timedOutSending``;
  ///   ``TransportError/closed`` if the peer has ended the connection; ``TransportError/cancelled`` after ``shutdown()``.
  ///   A stream on which only part of a message was sent accepts no further message.
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

  /// Sends an empty frame on a serial line, with the errors of ``send(_:by:)``. Throws ``TransportError/truncated`` on another
  /// connection.
  public func sendEmptyFrame(by deadline: Deadline) throws(TransportError) {
    guard isSerial else { throw .truncated }
    guard !isShutDown.load(ordering: .sequentiallyConsistent) else { throw .cancelled }
    guard !hasSendingEnded.load(ordering: .relaxed) else { throw .closed }
    try sendFrame(Span(), by: deadline)
  }

  private func sendFrame(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    var frame = [UInt8](repeating: 0, count: 2 + message.count)
    frame[0] = UInt8(truncatingIfNeeded: message.count >> 8)
    frame[1] = UInt8(truncatingIfNeeded: message.count)
    for index in message.indices { frame[2 + index] = message[index] }
    try sendBytes(frame.span, by: deadline)
  }

  /// Sends bytes on a stream, which need not be whole frames, with the errors of ``send(_:by:)``. It is for tests of a peer.
  package func sendBytes(_ bytes: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try unsafe bytes.withUnsafeBytes { bytes throws(TransportError) in
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

  /// Hands the operating system as many of `bytes` as it accepts at once: at least one, and on a packet socket all of them.
  private func write(_ bytes: UnsafeRawBufferPointer, by deadline: Deadline) throws(TransportError) -> Int {
    var waits = RepeatedWait(on: file)
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
      case _ where count == 0 || errno == EAGAIN:
        try waits.begin()
        try wait(for: POLLOUT, until: deadline, orThrow: .timedOutSending)
      case let code:
        throw isShutDown.load(ordering: .sequentiallyConsistent) ? .cancelled : TransportError(errno: code)
      }
    }
  }
}
