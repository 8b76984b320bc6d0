/// What a device keeps of a user, but for secrets.
public struct UserRecord: Sendable, Equatable {
  /// Never given to another user, of the same name neither.
  public let id: UInt64
  /// Attempts with codes that were not accepted, since each kind of code that they were made with was.
  public var failureCount: UInt64 = 0
  /// Which kinds of codes those attempts were made with.
  public var failedFactors: Factors = []
  /// Unix seconds; until then no code is looked at. 0 for a user who is not locked out.
  public var lockedUntil: UInt64 = 0
  /// How far the clock of the user's authenticator was ahead of the device's when a code was accepted last, in seconds.
  public var clockOffsetSeconds: Int64 = 0
  /// When a code made from the time was accepted last, by the device's clock, in Unix seconds; when the user was added
  /// before the first.
  public var lastAccepted: UInt64
  public var otp: CodeAccount?
  public var seal: CodeAccount?
  /// What a seal without counter and time has to be over, once.
  public var challenge: IssuedChallenge?

  public init(id: UInt64, lastAccepted: UInt64) {
    self.id = id
    self.lastAccepted = lastAccepted
  }
}

/// A device's challenge to one user: it came with a host code, and is good for one seal.
public struct IssuedChallenge: Sendable, Equatable {
  /// How long it may be answered, in seconds.
  public static let lifetimeSeconds: UInt64 = 300

  public let bytes: FixedBytes<8>
  /// Unix seconds.
  public let expires: UInt64

  public init(bytes: FixedBytes<8>, expires: UInt64) {
    self.bytes = bytes
    self.expires = expires
  }
}

/// An account of a user: how its codes are made, and which were used.
///
/// A *position* is what a code is made from beside the secret: a counter, or a time step.
public struct CodeAccount: Sendable, Equatable {
  public let method: CodeMethod
  /// The high-water mark: the first position whose code was not used up.
  public var nextPosition: UInt64
  /// Where a code beyond the window was seen last, one further: the code there, if it comes next, resynchronises.
  public var resynchronisingPosition: UInt64?

  public init(method: CodeMethod, nextPosition: UInt64 = 0) {
    self.method = method
    self.nextPosition = nextPosition
  }

  /// Whether only a device's challenge makes its codes fresh.
  var needsChallenge: Bool { !method.isCounted && method.timeStepSeconds == nil }

  /// Whether a device can verify codes of this kind that are made this way: one-time passwords from a counter or the time; seals
  /// by a suite without PIN and session information whose question takes 64 hexadecimal digits, and which has a counter or the
  /// time but not both. One with neither takes a device challenge.
  public static func canVerify(_ method: CodeMethod, for purpose: CodePurpose) -> Bool {
    switch (purpose, method) {
    case (.otp, .hotp), (.otp, .totp): return true
    case (.seal, .ocra(let suite)):
      return suite.length != nil && suite.pinHash == nil && suite.sessionByteCount == nil
        && suite.questionFormat == .hexadecimal && suite.questionLength == 64
        && !(suite.hasCounter && suite.timeStepSeconds != nil)
    default: return false
    }
  }
}

extension UserRecord {
  /// Uses up the position where a code was found; says whether the code counts. `now` is the device's time, in Unix seconds.
  mutating func useUp(_ purpose: CodePurpose, _ match: CodeMatch?, at now: UInt64) -> Bool {
    guard let match else { return false }
    let position: UInt64?
    switch purpose {
    case .otp: position = otp?.useUp(match)
    case .seal: position = seal?.useUp(match)
    case .host: return false
    }
    guard let position else { return false }
    if let step = account(purpose)?.method.timeStepSeconds { follow(step: step, position: position, at: now) }
    return true
  }

  /// The account of a purpose; the device keeps none for host codes, which it makes itself.
  public func account(_ purpose: CodePurpose) -> CodeAccount? {
    switch purpose {
    case .otp: otp
    case .seal: seal
    case .host: nil
    }
  }

  /// Corrects the offset by as little as puts the user's clock into the step whose code was accepted.
  private mutating func follow(step: UInt64, position: UInt64, at now: UInt64) {
    let expected = time(at: now)
    let first = position * step
    let last = first + step - 1
    if expected < first { clockOffsetSeconds += Int64(first - expected) }
    if expected > last { clockOffsetSeconds -= Int64(expected - last) }
    lastAccepted = now
  }
}

extension CodeAccount {
  /// Moves the high-water mark past a code that counts; gives its position, or nil.
  ///
  /// One that was found far off counts if the one before it was the last that was given.
  @inline(never)
  fileprivate mutating func useUp(_ match: CodeMatch) -> UInt64? {
    let awaited = resynchronisingPosition
    resynchronisingPosition = nil
    switch match {
    case .none: return nil
    case .near(let position):
      if needsChallenge { return position }
      guard position >= nextPosition else { return nil }
      nextPosition = position + 1
      return position
    case .far(let position):
      guard position >= nextPosition else { return nil }
      guard position == awaited else {
        resynchronisingPosition = position + 1
        return nil
      }
      nextPosition = position + 1
      return position
    }
  }

  /// Where this account begins once it takes the place of `known`: where both make the same codes at the same positions, no
  /// code that was used up counts again.
  ///
  /// Takes the same time whatever secrets of these lengths are.
  ///
  /// - Parameters:
  ///   - secret: this account's.
  ///   - known: the account that the user has now.
  ///   - knownSecret: that one's.
  public mutating func carryOn(
    with secret: Span<UInt8>, after known: CodeAccount, _ knownSecret: Span<UInt8>
  ) {
    let isSameSecret = constantTimeEqual(secret, knownSecret)
    guard isSameSecret, method.isCounted == known.method.isCounted,
      method.timeStepSeconds == known.method.timeStepSeconds
    else { return }
    nextPosition = max(nextPosition, known.nextPosition)
  }
}

/// How long a user waits after codes that were not accepted.
///
/// Each is written down before it is compared (RFC 4226 §7.3). Source: docs/protocol.md, Codes.
enum Lockout {
  static let freeFailureCount: UInt64 = 5
  static let firstSeconds: UInt64 = 30
  static let longestSeconds: UInt64 = 86_400

  /// The wait after so many failures in a row: none before the fifth, then 30 s, doubled by each more, up to a day.
  static func seconds(afterFailures count: UInt64) -> UInt64 {
    guard count >= freeFailureCount else { return 0 }
    let doublings = min(count - freeFailureCount, 12)
    return min(firstSeconds << doublings, longestSeconds)
  }
}

extension UserRecord {
  /// Counts an attempt with these kinds of codes, which are about to be compared.
  mutating func countAttempt(with factors: Factors, at now: UInt64) {
    failedFactors.formUnion(factors)
    failureCount = min(failureCount + 1, maximumInteger)
    let wait = Lockout.seconds(afterFailures: failureCount)
    if wait > 0 { lockedUntil = min(now + wait, maximumInteger) }
  }

  /// The attempt that was counted last was right. Failures with another kind of code stay: who knows one secret does not get
  /// guesses at the other by it.
  mutating func accept(_ factors: Factors) {
    failedFactors.subtract(factors)
    guard !failedFactors.isEmpty else { return unlock() }
    if failureCount > 0 { failureCount -= 1 }
    lockedUntil = 0
  }

  /// The owner's unlock code was accepted.
  public mutating func unlock() {
    (failureCount, failedFactors, lockedUntil) = (0, [], 0)
  }
}

/// What a user's account is for. The raw value is its application index.
public enum CodePurpose: UInt8, Sendable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals: codes over one command and its parameters.
  case seal = 2
  /// Host codes: the device's codes, by which a user knows it.
  case host = 3
}
