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

/// What the board answers: 1 or, for what failed, 0; four bytes of ticks that it took; two bytes of count, and the result.
@safe
public struct BoardAnswer: ~Copyable {
  private let storage = unsafe UnsafeMutableBufferPointer(
    start: board_test_answer(), count: Int(BOARD_TEST_BYTE_COUNT))
  public private(set) var count = 0
  private var shift = 0
  public var isSuccess = true
  public var ticks: UInt64 = 0

  public init() {}

  /// Begins anew; the result will lie `shift` bytes past a word.
  public mutating func begin(shift: Int) {
    (self.shift, count, isSuccess, ticks) = (shift, 0, true, 0)
  }

  /// Room for `count` bytes of result, holding what was there.
  @_lifetime(&self)
  public mutating func result(_ count: Int) -> MutableSpan<UInt8> {
    self.count = count
    let bytes = unsafe UnsafeMutableBufferPointer(rebasing: storage[shift..<shift + count])
    return unsafe _overrideLifetime(bytes.mutableSpan, mutating: &self)
  }

  /// Takes `bytes` as the result.
  public mutating func set(_ bytes: Span<UInt8>) {
    count = bytes.count
    for index in bytes.indices { unsafe storage[shift + index] = bytes[index] }
  }

  /// Takes `bytes` behind the result.
  public mutating func append(_ bytes: Span<UInt8>) {
    for index in bytes.indices { unsafe storage[shift + count + index] = bytes[index] }
    count += bytes.count
  }

  /// Takes four bytes of `number` behind the result.
  public mutating func append(_ number: UInt32) {
    for index in 0..<4 {
      unsafe storage[shift + count + index] = UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * index))
    }
    count += 4
  }

  public func send(to link: inout PeerLink) {
    link.sendByte(isSuccess ? 1 : 0)
    for index in 0..<4 { link.sendByte(UInt8(truncatingIfNeeded: ticks >> UInt64(24 - 8 * index))) }
    let count = isSuccess ? count : 0
    link.sendByte(UInt8(count >> 8))
    link.sendByte(UInt8(count & 0xFF))
    for index in 0..<count { unsafe link.sendByte(storage[shift + index]) }
  }
}

@c(board_fault)
func fault(frame: UnsafePointer<UInt32>, exception: UInt32) -> Never {
  unsafe reportFault(frame: frame, exception: exception)
}
