import CBoardTest
import HoldfastBoard
import HoldfastCore

/// What a test's host asks: the byte of an operation, two bytes of count, and so many bytes of fields, each with two bytes
/// of count before it, all big-endian. The first field is padding, so that the others lie at any alignment.
@safe
public struct BoardQuestion: ~Copyable {
  public private(set) var operation: UInt8 = 0
  private let storage = unsafe UnsafeMutableBufferPointer(
    start: board_test_question(), count: Int(BOARD_TEST_BYTE_COUNT))
  private var count = 0

  public init() {}

  /// Waits for one.
  public mutating func receive(from link: inout PeerLink) {
    operation = link.receiveByte()
    count = Int(link.receiveByte()) << 8 | Int(link.receiveByte())
    for index in 0..<count { unsafe storage[index] = link.receiveByte() }
  }

  /// How many bytes past a word the first field begins: the count of what is before it.
  public var shift: Int { byteCount(endingAt: 2) }

  /// How many fields there are.
  public var fieldCount: Int {
    var start = 2
    var fields = -1
    while start <= count {
      start += 2 + byteCount(endingAt: start)
      fields += 1
    }
    return fields
  }

  /// The bytes of field `number`, counted from 0.
  @_lifetime(borrow self)
  public func field(_ number: Int) -> Span<UInt8> {
    var start = 2
    for _ in 0...number { start += 2 + byteCount(endingAt: start) }
    let bytes = unsafe storage.span.extracting(start..<start + byteCount(endingAt: start))
    return unsafe _overrideLifetime(bytes, borrowing: self)
  }

  /// The number in field `number`, big-endian.
  public func integer(_ number: Int) -> UInt32 {
    let bytes = field(number)
    var value: UInt32 = 0
    for index in bytes.indices { value = value << 8 | UInt32(bytes[index]) }
    return value
  }

  /// The number in field `number`, big-endian, of at most eight bytes.
  public func longInteger(_ number: Int) -> UInt64 {
    let bytes = field(number)
    var value: UInt64 = 0
    for index in bytes.indices { value = value << 8 | UInt64(bytes[index]) }
    return value
  }

  private func byteCount(endingAt start: Int) -> Int {
    unsafe Int(storage[start - 2]) << 8 | Int(storage[start - 1])
  }
}

extension PeerLink {
  /// Waits for a byte.
  mutating func receiveByte() -> UInt8 {
    while true {
      if let byte = receive() { return byte }
      wait()
    }
  }

  /// Sends a byte, as soon as the last one is gone.
  mutating func sendByte(_ byte: UInt8) {
    while !send(byte) {}
  }
}
