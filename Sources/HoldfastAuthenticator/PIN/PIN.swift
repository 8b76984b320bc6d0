import HoldfastCore
import HoldfastOpenSSL

/// A PIN, 4 to 6 digits, wiped when it goes out of scope.
///
/// Whether it is the right one, nothing here can tell.
package struct PIN: ~Copyable, Sendable {
  /// The digits as ASCII.
  let digits: SecretBytes
  /// Which rule for a new PIN it breaks; nil for a good one.
  package let ruleFault: PINFault?

  /// Takes the ASCII `digits`.
  ///
  /// Throws `length`, `notDigits`. Timing: tells nothing but their count, whether all are digits, and which rule they break.
  package init(_ digits: Span<UInt8>) throws(PINFault) {
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
  package func isSame(as other: borrowing PIN) -> Bool {
    constantTimeEqual(digits.bytes, other.digits.bytes)
  }
}

/// What a new PIN must not be. No branch depends on a digit, only on whether a rule is broken.
extension PIN {
  static func ruleFault(_ digits: Span<UInt8>) -> PINFault? {
    if opaque(runFlag(digits)) != 0 { return .run }
    if opaque(repetitionFlag(digits)) != 0 { return .repetition }
    if opaque(yearFlag(digits, at: 0) | yearFlag(digits, at: digits.count - 4)) != 0 { return .year }
    return nil
  }

  /// 1 when each digit is the next one after that before it, or each the one before; 0 follows 9.
  private static func runFlag(_ digits: Span<UInt8>) -> UInt8 {
    var notUp: UInt32 = 0
    var notDown: UInt32 = 0
    for index in 1..<digits.count {
      // 1 to 19: 11 or 1 is a step up, 9 or 19 a step down.
      let step = UInt32(digits[index]) + 10 - UInt32(digits[index - 1])
      notUp |= (step ^ 11) * (step ^ 1)
      notDown |= (step ^ 9) * (step ^ 19)
    }
    return isZero(notUp) | isZero(notDown)
  }

  /// 1 when it is a part of at most half its length, again and again.
  private static func repetitionFlag(_ digits: Span<UInt8>) -> UInt8 {
    var flag: UInt8 = 0
    for period in 1...digits.count / 2 {
      var difference: UInt32 = 0
      for index in period..<digits.count { difference |= UInt32(digits[index] ^ digits[index - period]) }
      flag |= isZero(difference)
    }
    return flag
  }

  /// 1 when a year from 1900 to 2099 stands at `index`.
  private static func yearFlag(_ digits: Span<UInt8>, at index: Int) -> UInt8 {
    let century = UInt32(digits[index] - 0x30) * 10 + UInt32(digits[index + 1] - 0x30)
    return isZero((century ^ 19) * (century ^ 20))
  }

  /// 1 for 0, otherwise 0; `value` is below 2^31.
  private static func isZero(_ value: UInt32) -> UInt8 {
    UInt8(truncatingIfNeeded: (value &- 1) >> 31)
  }
}

/// Why some text is no PIN, or no good one.
package enum PINFault: Error, Sendable, Equatable, CaseIterable {
  /// It has fewer than 4 or more than 6 digits.
  case length
  /// It has other characters than the digits 0 to 9.
  case notDigits
  /// Its digits count up or down: 1234, 9876, 8901.
  case run
  /// It is one part again and again: 1111, 1212, 123123.
  case repetition
  /// It begins or ends with a year, 1900 to 2099: 198512, 121985.
  case year
}

/// What has to be asked for before a record's secret can be used.
package enum PINMode: Sendable, Equatable {
  /// Nothing: the secret is stored as it is.
  case none
  /// The PIN that it was blinded with.
  case current
  /// A PIN that is to be: asked twice, and held against the rules.
  case new
  /// A key that another authenticator hands over in place of a PIN.
  case external
}
