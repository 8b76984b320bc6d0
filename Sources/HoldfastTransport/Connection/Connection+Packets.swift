import CBlueZ
import Glibc

extension Connection {
  /// One packet is one message; what does not fit into 4096 bytes is never copied out of the kernel.
  func receivePacket(
    into buffer: UnsafeMutableRawBufferPointer, by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> ReceivedMessage {
    var hasSeenEnd = false
    while true {
      let (count, isCut) = unsafe readPacket(into: buffer)
      if count > 0 {
        guard !isCut else { throw .tooLong }
        return ReceivedMessage(byteCount: count, deadline: Deadline(afterMilliseconds: wholeMilliseconds))
      }
      // Linux tells of the end of a packet socket once before packets that arrived earlier: as no bytes on Bluetooth, as a reset elsewhere.
      if count == 0 {
        // A packet without bytes reads like the end of the connection, except that the peer is still there.
        guard try file.isHungUp() else { throw .truncated }
        guard !hasSeenEnd else { throw .closed }
        hasSeenEnd = true
        continue
      }
      switch errno {
      case EINTR: continue
      // A Bluetooth link that was ended says so once, by a reset; then there is nothing to wait for.
      case EAGAIN where hasSeenEnd: throw .closed
      case EAGAIN: try wait(for: POLLIN, until: deadline, orThrow: .timedOutWaiting)
      case ECONNRESET where !hasSeenEnd: hasSeenEnd = true
      case let code: throw TransportError(errno: code)
      }
    }
  }

  /// Source: recvmsg(2) and MSG_TRUNC. Descriptors that a peer sends along are closed by the kernel.
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
