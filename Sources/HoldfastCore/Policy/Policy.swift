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
