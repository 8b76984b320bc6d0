import HoldfastCore

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
