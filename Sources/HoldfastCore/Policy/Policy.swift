/// The limits that a token must keep.
public struct TokenLimits: Sendable, Equatable {
  /// The least generation, whatever was accepted so far.
  public var generationFloor: UInt64
  /// The least app version.
  public var minimumVersion: AppVersion
  /// How many seconds after its `iat` a token still counts; nil for as long as its `exp` says.
  public var maximumAgeSeconds: UInt64?

  public init(generationFloor: UInt64 = 0, minimumVersion: AppVersion = .zero, maximumAgeSeconds: UInt64? = nil) {
    self.generationFloor = generationFloor
    self.minimumVersion = minimumVersion
    self.maximumAgeSeconds = maximumAgeSeconds
  }
}

/// What policy says of one command.
public struct CommandRule: Sendable, Equatable {
  public var factors: Factors
  public var limits: TokenLimits
  /// Whether the command may come in a compatibility round.
  public var allowsCompatibility: Bool

  public init(factors: Factors, limits: TokenLimits = TokenLimits(), allowsCompatibility: Bool = false) {
    self.factors = factors
    self.limits = limits
    self.allowsCompatibility = allowsCompatibility
  }
}

/// What a device's owner allows. Whatever is not named is refused.
public protocol Policy: ~Copyable {
  /// What `command` needs; nil for a command that is not in the policy.
  func rule(for command: BoundedText<32>) -> CommandRule?
  /// The limits for commands that are not in the policy.
  var limits: TokenLimits { get }
  /// The factors that every command needs: the hint in M1.
  var commonFactors: Factors { get }
  /// Whether tokens without a signature are taken.
  var acceptsUnsigned: Bool { get }
  /// Whether tokens are taken whose issuer shares a MAC key with the device.
  var acceptsMAC: Bool { get }
  /// Which codes are looked for.
  var codeLimits: CodeLimits { get }
  /// How far above the clock floor an `iat` may be, in seconds.
  var maximumIssueAdvanceSeconds: UInt64 { get }
}

/// What a command needs beside a valid token.
public struct Factors: OptionSet, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The app is untampered: a right integrity proof.
  public static let integrity = Factors(rawValue: 1)
  /// It runs on the same device: a right device proof.
  public static let device = Factors(rawValue: 2)
  /// The right person: a one-time password.
  public static let otp = Factors(rawValue: 4)
  /// The right person, for exactly this command: a seal.
  public static let seal = Factors(rawValue: 8)

  /// All four.
  public static let all: Factors = [.integrity, .device, .otp, .seal]
}

/// Why a command was refused, or was accepted but not carried out.
///
/// The result of a sealed M3 says it as one word in ASCII, under `commandRefused`, `busy` and `internal`: the peer has proved
/// itself by then. Source: docs/protocol.md, Statuses.
public enum Refusal: UInt8, Sendable, CaseIterable {
  /// Policy does not know the command, or does not allow it in a compatibility round.
  case notInPolicy
  /// The token has a list of commands, and this one is not in it.
  case notInToken
  /// A code that the command needs is of another user than the token's or the other code's, or `host-code` or `user-sync` names
  /// another user.
  case anotherUser
  /// The command needs a seal, and a parameter is longer than policy lets a person read.
  case parameterTooLong
  /// The request repeats the number of an earlier one, but asks for another command or other parameters.
  case anotherCommand
  /// `host-code` names a user who was given a challenge less than a minute ago.
  case challengePending
  /// Policy and token allow the command, but the device has nothing that carries it out.
  case unknownToActuator

  /// The word in the result, at most 17 bytes of ASCII.
  public var word: StaticString {
    switch self {
    case .notInPolicy: "notInPolicy"
    case .notInToken: "notInToken"
    case .anotherUser: "anotherUser"
    case .parameterTooLong: "parameterTooLong"
    case .anotherCommand: "anotherCommand"
    case .challengePending: "challengePending"
    case .unknownToActuator: "unknownToActuator"
    }
  }

  /// Reads the result of a denial; nil for a word that this version does not know.
  public init?(word: Span<UInt8>) {
    for refusal in Refusal.allCases where word.elementsEqual(refusal.word) {
      self = refusal
      return
    }
    return nil
  }
}
