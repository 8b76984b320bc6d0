import HoldfastCore
import HoldfastOpenSSL

/// A PIN, 4 to 6 digits, wiped when it goes out of scope.
///
/// Whether it is the right one, nothing here can tell.
public struct PIN: ~Copyable, Sendable {
  /// The digits as ASCII.
  let digits: SecretBytes
  /// Which rule for a new PIN it breaks; nil for a good one.
  public let ruleFault: PINFault?

  /// Takes the ASCII `digits`.
  ///
  /// Throws `length`, `notDigits`. Timing: tells nothing but their count, whether all are digits, and which rule they break.
  public init(_ digits: Span<UInt8>) throws(PINFault) {
    guard (4...6).contains(digits.count) else { throw .length }
    var strange: Int32 = 0
    for index in digits.indices {
      let digit = Int32(digits[index]) - 0x30
      strange |= digit | (9 - digit)
    }
    guard opaque(UInt8(truncatingIfNeeded: strange >> 31)) == 0 else { throw .notDigits }
    ruleFault = Self.ruleFault(digits)
    self.digits = SecretBytes(copying: digits)
  }

  /// Whether both are the same. Timing: tells nothing but whether they are.
  public func isSame(as other: borrowing PIN) -> Bool {
    constantTimeEqual(digits.bytes, other.digits.bytes)
  }
}
