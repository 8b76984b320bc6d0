import HoldfastCore
import HoldfastOpenSSL

/// Secret bytes that grow; what is outgrown is wiped.
struct SecretBuffer: ~Copyable, ByteSink {
  private var storage: SecretBytes
  private(set) var count = 0

  init(capacity: Int = 64) {
    storage = SecretBytes(zeros: max(capacity, 1))
  }

  /// The bytes held; valid until the buffer changes.
  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { storage.bytes.extracting(0..<count) }
  }

  mutating func append(_ bytes: Span<UInt8>) throws(Never) {
    if bytes.count > storage.count - count { grow(to: max(storage.count * 2, count + bytes.count)) }
    let start = count
    var room = storage.mutableBytes
    for index in bytes.indices { room[start + index] = bytes[index] }
    count = start + bytes.count
  }

  private mutating func grow(to capacity: Int) {
    let count = count
    var larger = SecretBytes(zeros: capacity)
    storage.withBytes { bytes in
      var room = larger.mutableBytes
      for index in 0..<count { room[index] = bytes[index] }
    }
    storage = larger
  }

  /// A copy without white space.
  func withoutWhitespace() -> SecretBuffer {
    var copy = SecretBuffer(capacity: count)
    let bytes = bytes
    for index in bytes.indices where !isWhitespace(bytes[index]) { copy.append(bytes[index]) }
    return copy
  }

  /// The text without white space at both ends; `invalidName` unless it is UTF-8.
  func trimmedText() throws(ImportFault) -> String {
    let bytes = bytes
    var (start, end) = (0, count)
    while start < end, isWhitespace(bytes[start]) { start += 1 }
    while start < end, isWhitespace(bytes[end - 1]) { end -= 1 }
    return try String(checking: bytes.extracting(start..<end))
  }
}
