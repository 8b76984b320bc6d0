import Glibc

extension Connection {
  /// Reads the length, refuses what is no message on the length alone, then reads the message.
  func receiveFrame(
    into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> ReceivedMessage {
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
      return ReceivedMessage(byteCount: byteCount, deadline: whole)
    }
  }

  /// Reads the rest of a message that has begun.
  ///
  /// Returns false where a terminal falls silent within it: what comes next is another message.
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
      // A sender whose bytes never stop arriving does not get past the deadline either.
      if filledCount < rest.count && whole.hasPassed {
        terminal?.silenceDeadline = terminal?.nextSilence
        throw .timedOutReading
      }
    }
    return true
  }

  /// Drops what arrives on a terminal that sent something else than messages, until it has been silent long enough.
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

  /// Reads what is there, at least one byte, once there is one.
  ///
  /// - Throws: ``TransportError/timedOutWaiting``, and ``TransportError/closed`` at the end of the stream.
  private func read(into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline) throws(TransportError) -> Int {
    while true {
      let count = unsafe Glibc.read(file.descriptor, buffer.baseAddress, buffer.count)
      if count > 0 { return count }
      if count == 0 { throw .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN: try wait(for: POLLIN, until: deadline, orThrow: .timedOutWaiting)
      case let code: throw TransportError(errno: code)
      }
    }
  }
}
