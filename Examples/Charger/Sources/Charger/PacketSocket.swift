import Glibc
import HoldfastTransport

/// A transport that Holdfast does not have: a packet socket that is passed on, such as a gateway to the vehicle.
final class PacketSocket: MessageChannel {
  private let number: CInt

  init(_ number: CInt) { self.number = number }

  deinit { close(number) }

  func receive(by deadline: Deadline, wholeWithin _: Int) throws(TransportError) -> ReceivedMessage {
    try wait(for: POLLIN, by: deadline, orThrow: .timedOutWaiting)
    var bytes = [UInt8](repeating: 0, count: 4097)
    let count = recv(number, &bytes, bytes.count, 0)
    guard count > 0 else { throw .closed }
    guard count <= 4096 else { throw .tooLong }
    return ReceivedMessage(Array(bytes[..<count]))
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try wait(for: POLLOUT, by: deadline, orThrow: .timedOutSending)
    let count = message.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    guard count == message.count else { throw .closed }
  }

  func shutdown() { _ = Glibc.shutdown(number, CInt(SHUT_RDWR)) }

  private func wait(
    for event: CInt, by deadline: Deadline, orThrow timeout: TransportError
  ) throws(TransportError) {
    var entry = pollfd(fd: number, events: CShort(event), revents: 0)
    guard poll(&entry, 1, CInt(clamping: deadline.remainingMilliseconds)) > 0 else { throw timeout }
  }
}
