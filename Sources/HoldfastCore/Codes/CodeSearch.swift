/// A search for a code that a user gave.
struct CodeSearch: ~Copyable, ~Escapable {
  private let account: CodeAccount
  private let window: CodeWindow
  /// The bytes of the question that an OCRA code is made from; nil for other methods.
  private let question: Span<UInt8>?
  private let pin = Pinned()

  @_lifetime(copy question)
  init(account: CodeAccount, window: CodeWindow, question: Span<UInt8>?) {
    self.account = account
    self.window = window
    self.question = question
  }

  /// Returns the position where `given` is found. The search tries all positions and compares each in constant time.
  borrowing func find<Crypto: Cryptography & ~Copyable>(
    _ given: BoundedText<16>, key: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> CodeMatch {
    var near: UInt64?
    var far: UInt64?
    var position = window.far.lowerBound
    while position < window.far.upperBound {
      let code = try code(at: position, key: key, using: &cryptography)
      if constantTimeEqual(code.bytes, given.bytes) {
        if window.near.contains(position) {
          near = near ?? position
        } else if far == nil || position == account.resynchronisingPosition {
          far = position
        }
      }
      position += 1
    }
    if let near { return .near(position: near) }
    if let far { return .far(position: far) }
    return .none
  }

  private borrowing func code<Crypto: Cryptography & ~Copyable>(
    at position: UInt64, key: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> BoundedText<16> {
    switch account.method {
    case .hotp(let hash, let length), .totp(let hash, let length, _):
      return try HOTP.code(counter: position, key: key, hash: hash, length: length, using: &cryptography)
    case .ocra(let suite):
      guard let question else { throw CryptographyFailure() }
      do throws(OCRAFault) {
        return try OCRA.code(
          suite: suite, key: key,
          input: OCRAInput(
            counter: suite.hasCounter ? position : nil, questionBytes: question,
            timeStep: suite.timeStepSeconds == nil ? nil : position),
          using: &cryptography)
      } catch { throw CryptographyFailure() }
    }
  }
}

/// The positions whose codes are compared with a given one.
package struct CodeWindow: Equatable {
  /// The positions at which one code is enough.
  package let near: Range<UInt64>
  /// The positions at which two codes in a row are needed; `near` is within this range, unless both are empty.
  package let far: Range<UInt64>

  /// Computes the positions of an account that are tried at `now`.
  ///
  /// - Parameters:
  ///   - now: the device's time, in Unix seconds.
  package init(_ account: CodeAccount, of user: UserRecord, now: UInt64, limits: CodeLimits) {
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
      // The device's own challenge makes the code fresh, so there is only one position.
      near = 0..<1
      far = 0..<1
    }
  }

  /// Makes a window of positions at which one code is enough, and none beyond.
  init(only positions: Range<UInt64>) {
    (near, far) = (positions, positions)
  }

  /// Returns the steps within `tolerance` seconds of `center`, at least one to each side, but none before `next`.
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
  /// Returns the quotient of two numbers below 2^63, computed bit by bit. On a microcontroller, the library's `/` takes
  /// 700 bytes of code, and nothing else in a device divides 64-bit numbers.
  fileprivate func longDivided(by divisor: UInt64) -> UInt64 {
    // The dividend leaves at one end, and the quotient enters at the other.
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
  /// Returns the time that the user's authenticator is expected to have when the device's clock is at `now`, in Unix
  /// seconds; never before 1970.
  public func time(at now: UInt64) -> UInt64 {
    let offset = clockOffsetSeconds.magnitude
    return clockOffsetSeconds < 0 ? now - min(offset, now) : now + offset
  }
}

/// The result of searching for a given code.
public enum CodeMatch: Sendable, Equatable {
  /// The code was not found.
  case none
  /// The code was found at a position where it is enough.
  case near(position: UInt64)
  /// The code was found further away: it counts only after the code of the position before it.
  case far(position: UInt64)
}

/// The results of comparing a user's codes.
public struct CodeMatches: Sendable, Equatable {
  /// The number of the user whose codes were compared.
  public let userID: UInt64
  /// The results, one for each kind of code that was compared.
  public var results = ByPurpose<CodeMatch>()

  /// Creates results in which no code was compared.
  public init(userID: UInt64) {
    self.userID = userID
  }
}

/// The limits of a device's search for codes. Policy may change the members that are not `static`.
public struct CodeLimits: Sendable, Equatable {
  /// The number of counters that are tried, from the high-water mark on. Source: RFC 4226 §7.4.
  public var counterLookAhead: UInt64
  /// The most that a user's clock may be off just after an accepted code, in seconds. Source: RFC 6238 §6.
  public var clockToleranceSeconds: UInt64
  /// The most characters (Unicode scalars) of a parameter in a command that needs a seal.
  public var sealParameterLength: Int

  /// The number of counters that are tried for two codes in a row.
  public static let resynchronisingLookAhead: UInt64 = 200
  /// The most that a clock may be off if two codes in a row are given, in seconds.
  public static let resynchronisingToleranceSeconds: UInt64 = 3600
  /// The growth of the tolerance with each day without an accepted code, in seconds: the drift of a quartz clock.
  static let driftSecondsPerDay: UInt64 = 2
  /// The most that the tolerance grows to, in seconds.
  static let greatestToleranceSeconds: UInt64 = 600

  /// Creates limits; the defaults are those of docs/protocol.md, Codes.
  public init(counterLookAhead: UInt64 = 10, clockToleranceSeconds: UInt64 = 30, sealParameterLength: Int = 16) {
    self.counterLookAhead = counterLookAhead
    self.clockToleranceSeconds = clockToleranceSeconds
    self.sealParameterLength = sealParameterLength
  }

  /// Returns the tolerance, in seconds, after `silenceSeconds` without an accepted code.
  package func toleranceSeconds(silenceSeconds: UInt64) -> UInt64 {
    let days = min(silenceSeconds, 400 * 86_400) / 86_400
    return max(
      clockToleranceSeconds,
      min(clockToleranceSeconds + days * Self.driftSecondsPerDay, Self.greatestToleranceSeconds))
  }
}
