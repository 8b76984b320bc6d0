/// The positions whose codes are compared with a given one.
struct CodeWindow: Equatable {
  /// Where one code is enough.
  let near: Range<UInt64>
  /// Where two in a row are needed; `near` is within it, unless both are empty.
  let far: Range<UInt64>

  /// - Parameters:
  ///   - now: the device's time, in Unix seconds.
  init(_ account: CodeAccount, of user: UserRecord, now: UInt64, limits: CodeLimits) {
    let next = account.nextPosition
    if account.method.isCounted {
      near = next..<min(next + limits.counterLookAhead, maximumInteger)
      far = next..<min(next + max(CodeLimits.resynchronisingLookAhead, limits.counterLookAhead), maximumInteger)
    } else if let step = account.method.timeStepSeconds {
      let users = user.time(at: now)
      let silence = now - min(user.lastAccepted, now)
      near = Self.steps(step, around: users, limits.toleranceSeconds(silenceSeconds: silence), from: next)
      far = Self.steps(
        step, around: users,
        max(CodeLimits.resynchronisingToleranceSeconds, limits.toleranceSeconds(silenceSeconds: silence)), from: next)
    } else {
      // The device's own challenge makes the code fresh: there is one place.
      near = 0..<1
      far = 0..<1
    }
  }

  /// The steps that `tolerance` seconds around `center` reach, one to each side at least.
  private static func steps(
    _ step: UInt64, around center: UInt64, _ tolerance: UInt64, from next: UInt64
  ) -> Range<UInt64> {
    let middle = center.longDivided(by: step)
    let reach = max((tolerance + step - 1).longDivided(by: step), 1)
    let first = max(middle - min(reach, middle), next)
    let end = middle + reach + 1
    return first < end ? first..<end : first..<first
  }
}

extension UInt64 {
  /// The quotient of numbers below 2^63, bit by bit: a microcontroller's library takes 700 bytes of text for `/`, and nothing
  /// else of a device divides 64 bits.
  fileprivate func longDivided(by divisor: UInt64) -> UInt64 {
    // The dividend leaves at one end, and the quotient comes in at the other.
    var quotient = self
    var rest: UInt64 = 0
    for _ in 0..<64 {
      rest = rest << 1 | quotient >> 63
      quotient <<= 1
      if rest >= divisor {
        rest &-= divisor
        quotient |= 1
      }
    }
    return quotient
  }
}

extension UserRecord {
  /// The time that the user's authenticator is expected to have when the device's clock is at `now`; not before 1970.
  public func time(at now: UInt64) -> UInt64 {
    let offset = clockOffsetSeconds.magnitude
    return clockOffsetSeconds < 0 ? now - min(offset, now) : now + offset
  }
}
