import Glibc
import Synchronization
import Testing

@testable import HoldfastTransport

/// Long enough for anything that is going to happen, on a machine with other work.
let generousMilliseconds = 20_000

/// A folder of its own for a test, removed with what is in it.
final class TemporaryFolder {
  let path: String

  init() throws {
    let base = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/holdfast-XXXXXX".utf8CString)
    try #require(unsafe mkdtemp(&template) != nil)
    path = String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    if let folder = unsafe opendir(path) {
      while let entry = unsafe readdir(folder) {
        let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
          unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { unsafe unlink(path + "/" + name) }
      }
      unsafe closedir(folder)
    }
    unsafe rmdir(path)
  }

  func endpoint(_ framing: Framing = .packets, name: String = "s") -> Endpoint {
    let file = path + "/" + name
    return Endpoint(address: framing == .packets ? .unix(path: file) : .unixStream(path: file))
  }

  func makeFile(name: String = "s") throws {
    let descriptor = unsafe open(path + "/" + name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    close(descriptor)
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
