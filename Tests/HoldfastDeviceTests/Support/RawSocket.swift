import Glibc
import HoldfastTransport
import TestSupport
import Testing

/// A socket without Holdfast's framing.
final class RawSocket {
  private let descriptor: Int32

  /// As packets or as a stream, whatever `endpoint` is.
  convenience init(_ endpoint: Endpoint) throws {
    let type = if endpoint.scheme.framing == .stream { SOCK_STREAM } else { SOCK_SEQPACKET }
    try self.init(endpoint, type: Int32(type.rawValue))
  }

  init(_ endpoint: Endpoint, type: Int32) throws {
    descriptor = socket(AF_UNIX, type, 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array(endpoint.description.split(separator: ":", maxSplits: 1)[1].utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
    let result = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
  }

  deinit {
    close(descriptor)
  }

  func write(_ bytes: [UInt8]) throws {
    let count = unsafe send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    try #require(count == bytes.count)
  }

  /// Says whether the socket took it all at once.
  func writeIfTaken(_ bytes: [UInt8]) -> Bool {
    let count = unsafe send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    return count == bytes.count
  }

  func endWriting() {
    _ = Glibc.shutdown(descriptor, Int32(SHUT_WR))
  }

  /// One packet, or some bytes; none once the device has ended the connection.
  func read() throws -> [UInt8] {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let ready = unsafe poll(&waited, 1, Int32(TestPeer.patienceMilliseconds))
    try #require(ready == 1)
    var buffer = [UInt8](repeating: 0, count: 8192)
    var count = unsafe recv(descriptor, &buffer, buffer.count, 0)
    // Linux tells of the reset once, and then gives what came before it.
    if count < 0 && errno == ECONNRESET { count = unsafe recv(descriptor, &buffer, buffer.count, 0) }
    return Array(buffer[..<max(count, 0)])
  }

  func readToEnd() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let some = try read()
      if some.isEmpty { return all }
      all += some
    }
  }
}
