import Glibc
import HoldfastCore
import HoldfastLinux

/// The time at which tests take place: 2025-06-15.
package let testTime: UInt64 = 1_750_000_000

extension TypedBytes {
  package init(filledWith byte: UInt8) {
    self.init()
    for index in 0..<count { self[index] = byte }
  }
}

extension Array where Element == UInt8 {
  package init<Kind, let count: Int>(_ bytes: TypedBytes<Kind, count>) {
    self.init(bytes.bytes)
  }
}

extension Span where Element == UInt8 {
  package var array: [UInt8] { [UInt8](self) }
}

extension ByteBuffer {
  package var array: [UInt8] { bytes.array }
}

extension BoundedText: ExpressibleByUnicodeScalarLiteral {}
extension BoundedText: ExpressibleByExtendedGraphemeClusterLiteral {}
extension BoundedText: ExpressibleByStringLiteral {
  /// Lets tests write texts as literals.
  public init(stringLiteral text: String) { self.init(text)! }
}

/// Returns the bytes of hexadecimal digits; stops the test on anything else.
package func hex(_ text: String) -> [UInt8] {
  let digits = Array(text.utf8)
  precondition(digits.count % 2 == 0)
  return stride(from: 0, to: digits.count, by: 2).map {
    UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
  }
}

/// Returns lower-case hexadecimal digits.
package func hex(_ bytes: [UInt8]) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// Returns lower-case hexadecimal digits.
package func hex(_ bytes: Span<UInt8>) -> String { hex(bytes.array) }

package func fixed<Kind, let count: Int>(_ bytes: [UInt8]) -> TypedBytes<Kind, count> { TypedBytes(bytes.span)! }
package func secret<let count: Int>(_ bytes: [UInt8]) -> Secret<count> { Secret(copying: bytes.span)! }

package func randomBytes(_ count: Int) throws -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count)
  var random = SystemRandom()
  var span = bytes.mutableSpan
  try random.fill(&span)
  return bytes
}

package func base64URLText<Kind, let count: Int>(_ bytes: TypedBytes<Kind, count>) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
  var bits = Array(bytes).flatMap { byte in (0..<8).reversed().map { byte >> UInt8($0) & 1 } }
  while bits.count % 6 != 0 { bits.append(0) }
  return String(
    stride(from: 0, to: bits.count, by: 6).map { alphabet[bits[$0..<$0 + 6].reduce(0) { $0 << 1 | Int($1) }] })
}

/// A file that cannot be read.
package struct UnreadableFile: Error {
  package init() {}
}

package func readFile(_ path: String) throws -> [UInt8] {
  guard let file = unsafe fopen(path, "rb") else { throw UnreadableFile() }
  defer { unsafe fclose(file) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65536)
  while true {
    let count = unsafe fread(&chunk, 1, chunk.count, file)
    if count == 0 { return bytes }
    bytes += chunk.prefix(count)
  }
}
