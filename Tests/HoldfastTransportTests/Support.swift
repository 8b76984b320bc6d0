import Glibc
import Synchronization
import TestSupport
import Testing

import HoldfastTransport

/// Long enough for anything that is going to happen, on a machine with other work.
let generousMilliseconds = 60_000

extension TemporaryFolder {
  func endpoint(_ framing: Framing = .packets, name: String = "s") -> Endpoint {
    // A path of a temporary folder has no comma, so it is always an endpoint.
    try! Endpoint(parsing: "\(framing == .packets ? "unix" : "unix-stream"):\(path)/\(name)")
  }

  func identity(name: String = "s") -> OpenFile.Identity? {
    OpenFile.Identity(path: path + "/" + name)
  }
}

extension Connection {
  func sendBytes(_ bytes: [UInt8], timeoutMilliseconds: Int = generousMilliseconds) throws(TransportError) {
    try send(bytes.span, timeoutMilliseconds: timeoutMilliseconds)
  }

  func receiveBytes(
    firstByteWithin: Int = generousMilliseconds, wholeWithin: Int = generousMilliseconds
  ) throws(TransportError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0xee, count: Connection.maximumMessageByteCount)
    var span = buffer.mutableSpan
    let count = try receive(into: &span, firstByteWithin: firstByteWithin, wholeWithin: wholeWithin)
    return Array(buffer[..<count])
  }

  /// Bytes as they are, past the checks of ``send(_:timeoutMilliseconds:)``.
  func sendRaw(_ bytes: [UInt8]) throws {
    let count = unsafe Glibc.send(file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
    try #require(count == bytes.count)
  }
}

/// A message of `count` bytes in which no two places that are near each other look the same.
func pattern(_ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}
