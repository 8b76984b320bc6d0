import CBoardTest
import HoldfastBoard
import HoldfastCore

/// A question from a test's host: the byte of an operation, a 2-byte length, and that many bytes of fields. Each field has a
/// 2-byte length before it; all numbers are big-endian. The first field is padding, so that the others can have any
/// alignment.
@safe
public struct BoardQuestion: ~Copyable {
  /// The number of the operation.
  public private(set) var operation: UInt8 = 0
  private let storage = unsafe UnsafeMutableBufferPointer(
    start: board_test_question(), count: Int(BOARD_TEST_BYTE_COUNT))
  private var count = 0

  /// Makes an empty question. All questions share one static buffer.
  public init() {}

  /// Waits for a question and reads it.
  public mutating func receive(from link: inout PeerLink) {
    operation = link.receiveByte()
    count = Int(link.receiveByte()) << 8 | Int(link.receiveByte())
    for index in 0..<count { unsafe storage[index] = link.receiveByte() }
  }

  /// The number of bytes by which the first field after the padding is off a word boundary, which is the padding's length.
  public var shift: Int { byteCount(endingAt: 2) }

  /// The number of fields after the padding.
  public var fieldCount: Int {
    var start = 2
    var fields = -1
    while start <= count {
      start += 2 + byteCount(endingAt: start)
      fields += 1
    }
    return fields
  }

  /// Returns the bytes of field `number`, counted from 0.
  @_lifetime(borrow self)
  public func field(_ number: Int) -> Span<UInt8> {
    var start = 2
    for _ in 0...number { start += 2 + byteCount(endingAt: start) }
    let bytes = unsafe storage.span.extracting(start..<start + byteCount(endingAt: start))
    return unsafe _overrideLifetime(bytes, borrowing: self)
  }

  /// Returns the big-endian number in field `number`, of at most four bytes.
  public func integer(_ number: Int) -> UInt32 {
    let bytes = field(number)
    var value: UInt32 = 0
    for index in bytes.indices { value = value << 8 | UInt32(bytes[index]) }
    return value
  }

  /// Returns the big-endian number in field `number`, of at most eight bytes.
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
  /// Waits for a byte and returns it.
  mutating func receiveByte() -> UInt8 {
    while true {
      if let byte = receive() { return byte }
      wait()
    }
  }

  /// Sends a byte once the previous one was sent.
  mutating func sendByte(_ byte: UInt8) {
    while !send(byte) {}
  }
}

/// An answer of the board: 1, or 0 for a failure; the ticks that the operation took, in 4 bytes; a 2-byte length, and the
/// result. All numbers are big-endian.
@safe
public struct BoardAnswer: ~Copyable {
  private let storage = unsafe UnsafeMutableBufferPointer(
    start: board_test_answer(), count: Int(BOARD_TEST_BYTE_COUNT))
  /// The length of the result, in bytes.
  public private(set) var count = 0
  private var shift = 0
  /// Whether the operation succeeded. A failure is sent without a result.
  public var isSuccess = true
  /// The ticks of 40 ns that the operation took. Its lower 32 bits are sent.
  public var ticks: UInt64 = 0

  /// Makes an empty answer. All answers share one static buffer.
  public init() {}

  /// Clears the answer. The result begins `shift` bytes after a word boundary.
  public mutating func begin(shift: Int) {
    (self.shift, count, isSuccess, ticks) = (shift, 0, true, 0)
  }

  /// Returns a result of `count` bytes to write to. It holds the earlier contents of the buffer.
  @_lifetime(&self)
  public mutating func result(_ count: Int) -> MutableSpan<UInt8> {
    self.count = count
    let bytes = unsafe UnsafeMutableBufferPointer(rebasing: storage[shift..<shift + count])
    return unsafe _overrideLifetime(bytes.mutableSpan, mutating: &self)
  }

  /// Sets the result to `bytes`.
  public mutating func set(_ bytes: Span<UInt8>) {
    count = bytes.count
    for index in bytes.indices { unsafe storage[shift + index] = bytes[index] }
  }

  /// Appends `bytes` to the result.
  public mutating func append(_ bytes: Span<UInt8>) {
    for index in bytes.indices { unsafe storage[shift + count + index] = bytes[index] }
    count += bytes.count
  }

  /// Appends `number` to the result as 4 bytes, big-endian.
  public mutating func append(_ number: UInt32) {
    for index in 0..<4 {
      unsafe storage[shift + count + index] = UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * index))
    }
    count += 4
  }

  /// Sends the answer.
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
