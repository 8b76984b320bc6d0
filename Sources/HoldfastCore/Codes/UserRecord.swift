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
