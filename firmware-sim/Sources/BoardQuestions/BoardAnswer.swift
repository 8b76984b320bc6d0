import CBoardTest
import HoldfastBoard
import HoldfastCore

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
