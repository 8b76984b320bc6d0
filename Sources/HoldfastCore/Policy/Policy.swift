/// The limits that a token must keep.
public struct TokenLimits: Sendable, Equatable {
  /// The least generation of a token, in addition to the floor from accepted tokens.
  public var generationFloor: UInt64
  /// The least version of the app.
  public var minimumVersion: AppVersion
  /// The age, in seconds after its `iat`, up to which a token counts; nil for no limit other than its `exp`.
  public var maximumAgeSeconds: UInt64?

  /// Creates limits; the defaults admit every token.
  public init(generationFloor: UInt64 = 0, minimumVersion: AppVersion = .zero, maximumAgeSeconds: UInt64? = nil) {
    self.generationFloor = generationFloor
    self.minimumVersion = minimumVersion
    self.maximumAgeSeconds = maximumAgeSeconds
  }
}

/// A policy's rule for one command.
public struct CommandRule: Sendable, Equatable {
  /// The factors that the command needs.
  public var factors: Factors
  /// The limits that a token must keep for this command.
  public var limits: TokenLimits
  /// Whether the command may come in a compatibility round.
  public var allowsCompatibility: Bool

  /// Creates a rule; by default, it has no limits and allows no compatibility round.
  public init(factors: Factors, limits: TokenLimits = TokenLimits(), allowsCompatibility: Bool = false) {
    self.factors = factors
    self.limits = limits
    self.allowsCompatibility = allowsCompatibility
  }
}

/// A device owner's policy. It refuses every command that it does not name.
public protocol Policy: ~Copyable {
  /// Returns the rule for `command`; nil for a command that is not in the policy.
  func rule(for command: BoundedText<32>) -> CommandRule?
  /// Returns the rule for a request, which may depend on its parameters, on the token and on the time; nil for a request that
  /// the policy does not allow. A session asks once for each round.
  ///
  /// - Parameters:
  ///   - request: the request, as the prover sent it.
  ///   - token: the token of the round, whose issuer is trusted.
  ///   - realClock: the real clock, in Unix seconds; nil if there is none.
  func rule(
    for request: borrowing Request, of token: borrowing AuthenticatedToken, realClock: UInt64?
  ) -> CommandRule?
  /// The limits for commands that are not in the policy.
  var limits: TokenLimits { get }
  /// The factors that every command needs, for the hint in M1.
  var commonFactors: Factors { get }
  /// Whether the device accepts tokens without a signature or a MAC.
  var acceptsUnsigned: Bool { get }
  /// Whether the device accepts tokens under a MAC key that it shares with the issuer.
  var acceptsMAC: Bool { get }
  /// Whether the device accepts tokens with the subject `development`, of any program that has the service's development key.
  var acceptsDevelopment: Bool { get }
  /// The limits of the search for codes.
  var codeLimits: CodeLimits { get }
  /// The most seconds by which a token's `iat` may be above the clock floor.
  var maximumIssueAdvanceSeconds: UInt64 { get }
  /// Returns whether bulletins of a key may introduce other keys.
  func mayIntroduce(_ issuer: KeyID) -> Bool
  /// The id of the key whose holder is the home of the audit log; nil if the log stays at the device.
  var auditHome: KeyID? { get }
  /// Whether the device carries out `user-state` itself, if the policy names it.
  static var knowsUserState: Bool { get }
  /// Whether the device's store knows several authenticators of a user, and what its owner demands of them: see
  /// ``DeviceStore/mainUser(of:)``.
  static var knowsAuthenticators: Bool { get }
  /// Whether the device carries out `seal-request` itself, if the policy names it, recognises the refusal of a seal, and
  /// says why it rejected a code.
  static var knowsSealRequests: Bool { get }
  /// Whether the device takes bulletins between rounds, and says in accepted rounds which ones it has.
  static var knowsBulletins: Bool { get }
}

extension Policy where Self: ~Copyable {
  /// Returns false: a microcontroller has no room for it.
  @inlinable public static var knowsUserState: Bool { false }
  /// Returns false, for the same reason.
  @inlinable public static var knowsSealRequests: Bool { false }

  /// Returns false: a microcontroller has no room for them.
  @inlinable public static var knowsAuthenticators: Bool { false }
  /// Returns false, for the same reason.
  @inlinable public static var knowsBulletins: Bool { false }

  /// Returns the rule for the request's command.
  @inlinable public func rule(
    for request: borrowing Request, of token: borrowing AuthenticatedToken, realClock: UInt64?
  ) -> CommandRule? {
    rule(for: request.command)
  }
}

extension Policy where Self: ~Copyable {
  /// Tokens with the subject `development` are not accepted.
  public var acceptsDevelopment: Bool { false }

  /// Returns false: no key introduces others.
  public func mayIntroduce(_ issuer: KeyID) -> Bool { false }

  /// Returns nil: the log stays at the device.
  public var auditHome: KeyID? { nil }
}

/// The factors that a command needs in addition to a valid token.
public struct Factors: OptionSet, Sendable {
  /// The sum of the factors' numbers, as in M1.
  public let rawValue: UInt8

  /// Creates a set from the sum of its factors' numbers.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// A right integrity proof: the app is untampered.
  public static let integrity = Factors(rawValue: 1)
  /// A right device proof: the app runs on the same host.
  public static let device = Factors(rawValue: 2)
  /// A one-time password of the right person.
  public static let otp = Factors(rawValue: 4)
  /// A seal of the right person, for exactly this command.
  public static let seal = Factors(rawValue: 8)

  /// All four factors.
  public static let all: Factors = [.integrity, .device, .otp, .seal]
}

/// The reason why a command was refused, or was accepted but not carried out.
///
/// The result of a sealed M3 carries it as one word in ASCII, under `commandRefused`, `otpRejected`, `sealRejected`,
/// `busy` and `internal`. The peer has proved itself by then. Source: docs/protocol.md, Statuses.
public enum Refusal: UInt8, Sendable, CaseIterable {
  /// Policy does not know the command, or does not allow it with these parameters or in a compatibility round.
  case notInPolicy
  /// The token has a list of commands, and this one is not in it.
  case notInToken
  /// A code that the command needs belongs to another user than the token's or the other code's, or `host-code` or
  /// `user-sync` names another user.
  case anotherUser
  /// The command needs a seal, and a parameter is longer than policy lets a person read.
  case parameterTooLong
  /// The request repeats the number of an earlier one, but asks for another command or other parameters.
  case anotherCommand
  /// `host-code` names a user who was given a challenge less than a minute ago.
  case challengePending
  /// Policy and token allow the command, but no part of the device carries it out.
  case unknownToActuator
  /// The audit log is full of entries that its home has not acknowledged, and the policy demands that none is dropped.
  case auditLogFull
  // A microcontroller, which has no room for them, gives none of the following.
  #if !hasFeature(Embedded)
  /// In place of the seal, the user gave the refusal of exactly this command. The device has recorded it.
  case refusedByUser
  /// The code, or a later one, was accepted before.
  case codeUsed
  /// The code is right, but of a time that has passed.
  case codeTooOld
  /// No challenge of the device is pending, which the code would have to cover: it was answered before, or never issued.
  case noChallenge
  /// The challenge that the code would have to cover has expired.
  case challengeExpired
  #endif

  /// The word in the result, at most 17 bytes of ASCII.
  package var word: StaticString {
    switch self {
    case .notInPolicy: "notInPolicy"
    case .notInToken: "notInToken"
    case .anotherUser: "anotherUser"
    case .parameterTooLong: "parameterTooLong"
    case .anotherCommand: "anotherCommand"
    case .challengePending: "challengePending"
    case .unknownToActuator: "unknownToActuator"
    case .auditLogFull: "auditLogFull"
    #if !hasFeature(Embedded)
    case .refusedByUser: "refusedByUser"
    case .codeUsed: "codeUsed"
    case .codeTooOld: "codeTooOld"
    case .noChallenge: "noChallenge"
    case .challengeExpired: "challengeExpired"
    #endif
    }
  }

  /// Reads the reason from the result of a denial; nil for a word that this version does not know.
  package init?(word: Span<UInt8>) {
    for refusal in Refusal.allCases where word.elementsEqual(refusal.word) {
      self = refusal
      return
    }
    return nil
  }
}
