import HoldfastCore
import HoldfastOpenSSL

/// A PIN of 4 to 6 digits, which is wiped when it goes out of scope.
///
/// The authenticator cannot determine whether a PIN is correct.
public struct PIN: ~Copyable, Sendable {
  /// The permitted numbers of digits.
  package static var lengths: ClosedRange<Int> { 4...6 }

  /// The digits in ASCII.
  let digits: SecretBytes
  /// The rule for new PINs that this PIN breaks; nil if it breaks none.
  package let ruleFault: PINFault?

  /// Creates a PIN from ASCII `digits`.
  ///
  /// Timing: reveals only the number of digits, whether all are digits, and the rule that they break.
  ///
  /// - Throws: `length` or `notDigits`.
  public init(_ digits: Span<UInt8>) throws(PINFault) {
    guard Self.lengths.contains(digits.count) else { throw .length }
    var strange: Int32 = 0
    for index in digits.indices {
      let digit = Int32(digits[index]) - 0x30
      strange |= digit | (9 - digit)
    }
    guard revealed(UInt8(truncatingIfNeeded: strange >> 31)) == 0 else { throw .notDigits }
    ruleFault = Self.ruleFault(digits)
    self.digits = SecretBytes(copying: digits)
  }

  /// Returns whether both PINs are equal. Timing: reveals only the result.
  package func isSame(as other: borrowing PIN) -> Bool {
    constantTimeEqual(digits.bytes, other.digits.bytes)
  }
}

/// The rules for a new PIN. No branch depends on a digit, only on whether a rule is broken. The operators do not check for overflow,
/// which would be a branch.
extension PIN {
  static func ruleFault(_ digits: Span<UInt8>) -> PINFault? {
    if revealed(runFlag(digits)) != 0 { return .run }
    if revealed(repetitionFlag(digits)) != 0 { return .repetition }
    if revealed(yearFlag(digits, at: 0) | yearFlag(digits, at: digits.count - 4)) != 0 { return .year }
    return nil
  }

  /// Returns 1 if each digit follows the one before it, or each precedes it; 0 follows 9.
  private static func runFlag(_ digits: Span<UInt8>) -> UInt8 {
    var notUp: UInt32 = 0
    var notDown: UInt32 = 0
    for index in 1..<digits.count {
      // The value is 1 to 19: 11 or 1 is a step up, 9 or 19 is a step down.
      let step = UInt32(digits[index]) &+ 10 &- UInt32(digits[index - 1])
      notUp |= (step ^ 11) &* (step ^ 1)
      notDown |= (step ^ 9) &* (step ^ 19)
    }
    return isZero(notUp) | isZero(notDown)
  }

  /// Returns 1 if the digits repeat a part of at most half their length.
  private static func repetitionFlag(_ digits: Span<UInt8>) -> UInt8 {
    var flag: UInt8 = 0
    for period in 1...digits.count / 2 {
      var difference: UInt32 = 0
      for index in period..<digits.count { difference |= UInt32(digits[index] ^ digits[index - period]) }
      flag |= isZero(difference)
    }
    return flag
  }

  /// Returns 1 if a year from 1900 to 2099 begins at `index`.
  private static func yearFlag(_ digits: Span<UInt8>, at index: Int) -> UInt8 {
    let century = UInt32(digits[index] &- 0x30) &* 10 &+ UInt32(digits[index + 1] &- 0x30)
    return isZero((century ^ 19) &* (century ^ 20))
  }

  /// Returns 1 for 0 and otherwise 0. `value` is below 2^31.
  private static func isZero(_ value: UInt32) -> UInt8 {
    UInt8(truncatingIfNeeded: (value &- 1) >> 31)
  }
}

/// The reasons why text is not a PIN or is too weak for a new one.
public enum PINFault: Error, Sendable, Equatable, CaseIterable {
  /// The text has fewer than 4 or more than 6 digits.
  case length
  /// The text has characters other than the digits 0 to 9.
  case notDigits
  /// The digits count up or down: 1234, 9876, 8901.
  case run
  /// The digits repeat one part: 1111, 1212, 123123.
  case repetition
  /// The digits begin or end with a year from 1900 to 2099: 198512, 121985.
  case year
}
