import HoldfastCore

/// A growing buffer of secret bytes. Memory that it leaves when it grows is wiped.
package struct SecretBuffer: ~Copyable, ByteSink {
  private var storage: SecretBytes
  package private(set) var count = 0

  package init(capacity: Int = 64) {
    storage = SecretBytes(zeros: max(capacity, 1))
  }

  /// The bytes in the buffer; valid until the buffer changes.
  package var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { storage.bytes.extracting(0..<count) }
  }

  package mutating func append(_ bytes: Span<UInt8>) throws(Never) {
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
}
