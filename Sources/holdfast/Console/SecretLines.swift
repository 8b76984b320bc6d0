import Glibc
import HoldfastCore
import HoldfastOpenSSL

/// Lines that are secrets: each from a file, or for `-` the next line of standard input, or what a person types unseen.
///
/// One value reads all of a verb's `-`, so that several lines of standard input are taken in order.
struct SecretLines: ~Copyable {
  private var standardInput = ByteBuffer<4096>()
  private var position = 0
  private var isAtEnd = false

  /// The first line of `path` without its end, at most `limit` bytes.
  mutating func line(from path: String, asking prompt: String, limit: Int) throws(Failure) -> SecretBytes {
    if path == "-" {
      return isatty(STDIN_FILENO) == 1 ? try Prompt.secret(prompt, limit: limit) : try nextLine(limit: limit)
    }
    let bytes = try Input.read(path, limit: limit + 2)
    return try Self.firstLine(of: bytes.span, limit: limit)
  }

  private static func firstLine(of bytes: Span<UInt8>, limit: Int) throws(Failure) -> SecretBytes {
    var end = 0
    while end < bytes.count, bytes[end] != 0x0a { end += 1 }
    guard end >= bytes.count - 1 else { throw Failure(.malformed, "a secret is one line") }
    if end > 0, bytes[end - 1] == 0x0d { end -= 1 }
    guard end <= limit else { throw Failure(.malformed, "a secret is longer than it may be") }
    return SecretBytes(copying: bytes.extracting(0..<end))
  }

  private mutating func nextLine(limit: Int) throws(Failure) -> SecretBytes {
    while true {
      if let end = newline() {
        let start = position
        position = end + 1
        return try Self.firstLine(of: standardInput.bytes.extracting(start..<end), limit: limit)
      }
      guard !isAtEnd else { break }
      try readMore()
    }
    let start = position
    position = standardInput.count
    guard start < position else { throw Failure(.malformed, "standard input has no line for it") }
    return try Self.firstLine(of: standardInput.bytes.extracting(start..<position), limit: limit)
  }

  /// Where the next line ends.
  private borrowing func newline() -> Int? {
    let bytes = standardInput.bytes
    for index in position..<bytes.count where bytes[index] == 0x0a { return index }
    return nil
  }

  private mutating func readMore() throws(Failure) {
    var chunk = Secret<512>()
    let count = chunk.withMutableBytes { bytes in
      unsafe bytes.withUnsafeMutableBytes { bytes in
        while true {
          let count = unsafe Glibc.read(STDIN_FILENO, bytes.baseAddress, bytes.count)
          if count < 0 && errno == EINTR { continue }
          return count
        }
      }
    }
    guard count >= 0 else { throw Failure(.malformed, "standard input cannot be read") }
    isAtEnd = count == 0
    do throws(EncodingFault) {
      try chunk.withBytes { (bytes) throws(EncodingFault) in try standardInput.append(bytes.extracting(0..<count)) }
    } catch { throw Failure(.malformed, "standard input is too long") }
  }
}
