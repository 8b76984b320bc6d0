/// Looks for a code that a user gave.
struct CodeSearch: ~Copyable, ~Escapable {
  private let account: CodeAccount
  private let window: CodeWindow
  /// For an OCRA suite: what the code is over.
  private let question: Span<UInt8>?
  private let pin = Pinned()

  @_lifetime(copy question)
  init(account: CodeAccount, window: CodeWindow, question: Span<UInt8>?) {
    self.account = account
    self.window = window
    self.question = question
  }

  /// Where `given` is found. All positions are tried, each compared in constant time.
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

/// Where a given code was found.
public enum CodeMatch: Sendable, Equatable {
  /// Nowhere.
  case none
  /// Where it is enough.
  case near(position: UInt64)
  /// Further off: it counts only after the code before it.
  case far(position: UInt64)
}

/// What comparing a user's codes gave; nil for one that was not compared.
public struct CodeMatches: Sendable, Equatable {
  /// Whose codes they were compared with.
  public let userID: UInt64
  public var otp: CodeMatch?
  public var seal: CodeMatch?

  public init(userID: UInt64) {
    self.userID = userID
  }
}

/// Which codes a device looks for. Policy may change what is not `static`.
public struct CodeLimits: Sendable, Equatable {
  /// How many counters from the high-water mark on are tried. Source: RFC 4226 §7.4.
  public var counterLookAhead: UInt64
  /// How far a user's clock may be off after a code was just accepted, in seconds. Source: RFC 6238 §6.
  public var clockToleranceSeconds: UInt64
  /// The most characters of a parameter in a command that needs a seal.
  public var sealParameterLength: Int

  /// How many counters are tried for two codes in a row.
  public static let resynchronisingLookAhead: UInt64 = 200
  /// How far a clock may be off where two codes in a row are given, in seconds.
  public static let resynchronisingToleranceSeconds: UInt64 = 3600
  /// By how much the tolerance grows with each day without an accepted code, in seconds: what a quartz clock drifts.
  static let driftSecondsPerDay: UInt64 = 2
  /// The most that the tolerance grows to, in seconds.
  static let greatestToleranceSeconds: UInt64 = 600

  public init(counterLookAhead: UInt64 = 10, clockToleranceSeconds: UInt64 = 30, sealParameterLength: Int = 16) {
    self.counterLookAhead = counterLookAhead
    self.clockToleranceSeconds = clockToleranceSeconds
    self.sealParameterLength = sealParameterLength
  }

  /// The tolerance after `silenceSeconds` without an accepted code.
  func toleranceSeconds(silenceSeconds: UInt64) -> UInt64 {
    let days = min(silenceSeconds, 400 * 86_400) / 86_400
    return max(
      clockToleranceSeconds,
      min(clockToleranceSeconds + days * Self.driftSecondsPerDay, Self.greatestToleranceSeconds))
  }
}
