/// A device's record of a user, without the user's secrets.
public struct UserRecord: Sendable, Equatable {
  /// The user's number, never reused, even for a user with the same name; 0 before the store has given it.
  public var id: UInt64
  /// The number of failed attempts with codes. It goes back to zero once each kind of code in ``failedFactors`` was
  /// accepted.
  public var failureCount: UInt64 = 0
  /// The kinds of codes in those attempts that were not accepted since.
  public var failedFactors: Factors = []
  /// The end of the user's lockout, in Unix seconds. The device looks at no code before then. 0 for a user who is not
  /// locked out.
  public var lockedUntil: UInt64 = 0
  /// The seconds by which the clock of the user's authenticator was ahead of the device's when a code was last
  /// accepted; negative if it was behind.
  public var clockOffsetSeconds: Int64 = 0
  /// The time by the device's clock when a time-based code was last accepted, in Unix seconds; before the first one,
  /// the time when the user was added.
  public var lastAccepted: UInt64
  /// The user's accounts, one for each kind of code that the user gives.
  package var accounts = ByPurpose<CodeAccount>()
  /// The device's challenge that a seal without counter and time must cover, once; nil if there is none.
  public var challenge: IssuedChallenge?

  /// Creates the record of a user without accounts. `lastAccepted` is in Unix seconds.
  public init(id: UInt64, lastAccepted: UInt64) {
    self.id = id
    self.lastAccepted = lastAccepted
  }
}

/// A device's challenge to one user, which came with a host code and is good for one seal.
public struct IssuedChallenge: Sendable, Equatable {
  /// The time within which a challenge may be answered, in seconds.
  public static let lifetimeSeconds: UInt64 = 300

  /// The challenge, 8 random bytes.
  public let bytes: FixedBytes<8>
  /// The time at which the challenge expires, in Unix seconds.
  public let expires: UInt64

  /// Creates a challenge from its parts.
  public init(bytes: FixedBytes<8>, expires: UInt64) {
    self.bytes = bytes
    self.expires = expires
  }
}

/// An account of a user: the method of its codes, and the codes that were used.
///
/// A *position* is the input of a code in addition to the secret: a counter, or a time step.
public struct CodeAccount: Sendable, Equatable {
  /// The method of the account's codes.
  public let method: CodeMethod
  /// The high-water mark: the first position whose code is not used up.
  public var nextPosition: UInt64
  /// The position after that of the last code, if that code was found in the far window. A code at this position, if it
  /// comes next, resynchronises the account.
  public var resynchronisingPosition: UInt64?

  /// Creates an account whose codes are unused from `nextPosition` on.
  public init(method: CodeMethod, nextPosition: UInt64 = 0) {
    self.method = method
    self.nextPosition = nextPosition
  }

  /// Whether only a device's challenge makes the account's codes fresh.
  var needsChallenge: Bool { !method.isCounted && method.timeStepSeconds == nil }

  #if hasFeature(Embedded)
  /// Whether the account's codes of this purpose must cover a challenge of the device. A microcontroller has no passwords over
  /// a challenge.
  func needsChallenge(for purpose: CodePurpose) -> Bool { needsChallenge }
  #else
  /// Whether the account's codes of this purpose must cover a challenge of the device.
  func needsChallenge(for purpose: CodePurpose) -> Bool { needsChallenge || isBoundToConnection(for: purpose) }

  /// Whether the account's codes of this purpose are one-time passwords over a challenge, which are good only on the connection
  /// on which the device issued the challenge.
  package func isBoundToConnection(for purpose: CodePurpose) -> Bool {
    guard purpose == .otp, case .ocra = method else { return false }
    return true
  }
  #endif

  /// Returns whether a device can verify codes of this kind that are made by this method.
  ///
  /// One-time passwords need HOTP, TOTP, or an OCRA suite whose question takes a device challenge
  /// (`OCRAQuestion.init(challengeDigits:for:)`). Seals need an OCRA suite whose question takes 64 hexadecimal digits; if it has
  /// neither a counter nor the time, a device challenge comes first. Either suite has digits, no PIN and no session information,
  /// and not both a counter and the time. A microcontroller verifies no one-time passwords of OCRA.
  public static func canVerify(_ method: CodeMethod, for purpose: CodePurpose) -> Bool {
    switch (purpose, method) {
    case (.otp, .hotp), (.otp, .totp): return true
    case (.seal, .ocra(let suite)):
      return suite.isVerifiable && suite.questionFormat == .hexadecimal && suite.questionLength == 64
    #if !hasFeature(Embedded)
    case (.otp, .ocra(let suite)): return suite.isVerifiable && suite.takesChallenge
    #endif
    default: return false
    }
  }
}

extension OCRASuite {
  /// Whether a device can verify the suite's codes, apart from its question.
  fileprivate var isVerifiable: Bool {
    length != nil && pinHash == nil && sessionByteCount == nil && !(hasCounter && timeStepSeconds != nil)
  }
}

extension UserRecord {
  /// Uses up the position where a code was found, and returns whether the code counts. `now` is the device's time, in
  /// Unix seconds.
  package mutating func useUp(_ purpose: CodePurpose, _ match: CodeMatch?, at now: UInt64) -> Bool {
    guard let match else { return false }
    guard let position = accounts[purpose]?.useUp(match) else { return false }
    if let step = accounts[purpose]?.method.timeStepSeconds { follow(step: step, position: position, at: now) }
    return true
  }

  /// Corrects the clock offset by the least amount that puts the user's clock into the step whose code was accepted.
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
  /// Moves the high-water mark past a code that counts, and returns the code's position; nil for a code that does not
  /// count.
  ///
  /// A code from the far window counts if the code before it was the last one that was given.
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

  /// Carries over the high-water mark of the account that this one replaces, so that used codes stay used if both
  /// accounts make the same codes at the same positions.
  ///
  /// Timing: depends on the lengths of the secrets and on whether they are equal.
  ///
  /// - Parameters:
  ///   - secret: the secret of this account.
  ///   - known: the account that the user has now.
  ///   - knownSecret: the secret of `known`.
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

/// The lockout of a user after codes that were not accepted.
///
/// The device records each attempt as a failure before it compares the code (RFC 4226 §7.3). Source: docs/protocol.md,
/// Codes.
package enum Lockout {
  static let freeFailureCount: UInt64 = 5
  static let firstSeconds: UInt64 = 30
  static let longestSeconds: UInt64 = 86_400

  /// Returns the lockout after `count` failures, in seconds: none before the fifth, then 30 s, doubled with each
  /// further failure, up to a day.
  package static func seconds(afterFailures count: UInt64) -> UInt64 {
    guard count >= freeFailureCount else { return 0 }
    let doublings = min(count - freeFailureCount, 12)
    return min(firstSeconds << doublings, longestSeconds)
  }
}

extension UserRecord {
  /// Counts an attempt with these kinds of codes, which are about to be compared, as a failure. `now` is in Unix
  /// seconds.
  package mutating func countAttempt(with factors: Factors, at now: UInt64) {
    failedFactors.formUnion(factors)
    failureCount = min(failureCount + 1, maximumInteger)
    let wait = Lockout.seconds(afterFailures: failureCount)
    if wait > 0 { lockedUntil = min(now + wait, maximumInteger) }
  }

  /// Takes back the last attempt, whose codes were right. Failures with another kind of code stay, so that knowing one
  /// secret gives no further guesses at the other.
  mutating func accept(_ factors: Factors) {
    failedFactors.subtract(factors)
    guard !failedFactors.isEmpty else { return unlock() }
    if failureCount > 0 { failureCount -= 1 }
    lockedUntil = 0
  }

  /// Forgets all failures and ends the lockout.
  public mutating func unlock() {
    (failureCount, failedFactors, lockedUntil) = (0, [], 0)
  }
}

/// The purpose of a user's account. The raw value is its application index.
public enum CodePurpose: UInt8, Sendable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals: codes over one command and its parameters.
  case seal = 2
  /// Host codes, which the device makes so that a user can recognise it.
  case host = 3

  /// The purposes of the codes that a user gives, in the order in which a device checks them.
  package static var given: Given { Given() }
  /// The number of purposes in ``given``.
  package static var givenCount: Int { 2 }

  /// The sequence of the purposes of given codes. In contrast to an array, it needs no heap.
  package struct Given: Sequence, IteratorProtocol, Sendable {
    private var last: UInt8 = 0

    /// Returns the next purpose; nil after the last one.
    package mutating func next() -> CodePurpose? {
      guard last < CodePurpose.givenCount else { return nil }
      last += 1
      return CodePurpose(rawValue: last)
    }
  }

  /// The factor that a code of this purpose is; none for a host code, which the device gives.
  var factor: Factors {
    switch self {
    case .otp: .otp
    case .seal: .seal
    case .host: []
    }
  }

  /// The status of a round whose code of this purpose is rejected.
  var rejection: Status { self == .seal ? .sealRejected : .otpRejected }
}

/// One value for each kind of code that a user gives (``CodePurpose``); nil for a kind that has none.
public struct ByPurpose<Value: Sendable & Equatable>: Sendable, Equatable {
  private var otp: Value?
  private var seal: Value?

  /// Creates a collection of these values.
  public init(otp: Value? = nil, seal: Value? = nil) {
    (self.otp, self.seal) = (otp, seal)
  }

  /// The value of a purpose; nil if there is none. Host codes never have one: the device makes them itself.
  public subscript(_ purpose: CodePurpose) -> Value? {
    get {
      switch purpose {
      case .otp: otp
      case .seal: seal
      case .host: nil
      }
    }
    set {
      switch purpose {
      case .otp: otp = newValue
      case .seal: seal = newValue
      case .host: break
      }
    }
  }

  /// The number of values.
  public var count: Int { (otp == nil ? 0 : 1) + (seal == nil ? 0 : 1) }

  /// Returns a collection with the results of `transform` for each value.
  public func map<Other>(_ transform: (Value) -> Other) -> ByPurpose<Other> {
    ByPurpose<Other>(otp: otp.map(transform), seal: seal.map(transform))
  }
}
