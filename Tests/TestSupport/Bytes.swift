import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The time at which tests take place: 2025-06-15.
package let testTime: UInt64 = 1_750_000_000

extension FixedBytes {
  package init(filledWith byte: UInt8) {
    self.init()
    for index in 0..<count { self[index] = byte }
  }
}

extension Array where Element == UInt8 {
  package init<let count: Int>(_ bytes: FixedBytes<count>) {
    self = (0..<count).map { bytes[$0] }
  }

  package init(copying bytes: Span<UInt8>) {
    self = []
    append(bytes)
  }
}

package func randomBytes(_ count: Int) throws -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count)
  var random = SystemRandom()
  var span = bytes.mutableSpan
  try random.fill(&span)
  return bytes
}

package func base64URLText<let count: Int>(_ bytes: FixedBytes<count>) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
  var bits = Array(bytes).flatMap { byte in (0..<8).reversed().map { byte >> UInt8($0) & 1 } }
  while bits.count % 6 != 0 { bits.append(0) }
  return String(
    stride(from: 0, to: bits.count, by: 6).map { alphabet[bits[$0..<$0 + 6].reduce(0) { $0 << 1 | Int($1) }] })
}
