import HoldfastCore
import HoldfastFirmware
import HoldfastFormats
import HoldfastLinux

/// A policy of a device's owner, as in `policy.json`. Commands that it does not name are refused.
public struct DevicePolicy: Policy, Sendable, Equatable {
  /// The most commands that a policy may name.
  package static let maximumCommandCount = Limit.commands.linux
  /// The default of ``maximumIssueAdvanceDays``.
  package static let usualIssueAdvanceDays: UInt64 = 400
  /// The greatest value of ``maximumIssueAdvanceDays``.
  package static let greatestIssueAdvanceDays: UInt64 = 36_500
  /// The bounds that an audit log can have.
  package static let auditBounds: ClosedRange<UInt64> = 1000...10_000_000

  /// Whether tokens without a signature are accepted.
  public var acceptsUnsigned: Bool
  /// Whether tokens are accepted whose issuer shares a MAC key with the device.
  public var acceptsMAC: Bool
  /// Whether tokens with the subject `development` are accepted. A microcontroller accepts none.
  public var acceptsDevelopment = false
  /// The limits for commands without limits in their rules, and for commands that are not in the policy.
  public var limits: TokenLimits
  /// The most days by which a token's `iat` may be ahead of the clock floor.
  package var maximumIssueAdvanceDays: UInt64
  /// The limits of the search for codes.
  public var codeLimits: CodeLimits
  /// The keys whose bulletins may introduce others.
  package var introducers: Set<KeyID> = []
  /// The rules about keeping the audit log of a served folder. A microcontroller has a separate bound.
  package var auditRules = AuditRules()
  /// The rules of the commands, with the limits that apply to each.
  package var commands: [BoundedText<32>: CommandRule]
  /// The rules that depend on parameters and circumstances, of the commands that have any.
  package var conditions: [BoundedText<32>: CommandConditions] = [:]
  /// The commands whose parameters the audit log keeps as text. Of other parameters it keeps SHA-256.
  package var commandsAuditedAsText: Set<BoundedText<32>> = []
  /// The texts for people in requests for seals, of the commands that have one.
  package var texts: [BoundedText<32>: RequestTemplate] = [:]

  /// Creates a policy that accepts only signed tokens.
  ///
  /// - Parameter commands: the rules of the commands, at most 256, by the commands' names.
  public init(commands: [BoundedText<32>: CommandRule]) {
    self.init(commands: commands, limits: TokenLimits())
  }

  /// Makes a policy. By default it names no command and accepts only signed tokens.
  package init(
    commands: [BoundedText<32>: CommandRule] = [:], limits: TokenLimits = TokenLimits(), acceptsUnsigned: Bool = false,
    acceptsMAC: Bool = false, maximumIssueAdvanceDays: UInt64 = DevicePolicy.usualIssueAdvanceDays,
    codeLimits: CodeLimits = CodeLimits()
  ) {
    self.commands = commands
    self.limits = limits
    self.acceptsUnsigned = acceptsUnsigned
    self.acceptsMAC = acceptsMAC
    self.maximumIssueAdvanceDays = maximumIssueAdvanceDays
    self.codeLimits = codeLimits
  }

  /// Returns the rule of a command; nil if the policy does not name it.
  public func rule(for command: BoundedText<32>) -> CommandRule? {
    commands[command]
  }

  /// Returns the rule for a request, in which no token has been used before: see `SessionPolicy`.
  public func rule(
    for request: borrowing Request, of token: borrowing AuthenticatedToken, realClock: UInt64?
  ) -> CommandRule? {
    guard allowsSealRequest(request, of: token, now: realClock) else { return nil }
    return rule(for: request, of: token, now: realClock, isIntroduced: false)
  }

  /// Returns the rule for a request; nil if the policy does not name the command or refuses its parameters or the
  /// app's version. `now` is in Unix seconds.
  func rule(
    for request: borrowing Request, of token: borrowing AuthenticatedToken, now: UInt64?, isIntroduced: Bool
  ) -> CommandRule? {
    guard var rule = commands[request.command] else { return nil }
    guard let conditions = conditions[request.command] else { return rule }
    var parameters: [BoundedText<64>] = []
    for index in 0..<(request.parameterCount ?? 0) { parameters.append(request.parameter(index)) }
    let circumstances = Circumstances(
      parameters: parameters, now: now, version: token.claims.version, issuedAt: token.claims.issuedAt,
      isIntroduced: isIntroduced)
    guard let further = conditions.furtherFactors(in: circumstances) else { return nil }
    rule.factors.formUnion(further)
    return rule
  }

  /// Returns whether a user can be asked for a seal over what `request` names: the policy and the token allow that command with
  /// these parameters, it may need a seal, and a person can read the parameters. A request of any other kind is never refused
  /// here.
  func allowsSealRequest(
    _ request: borrowing Request, of token: borrowing AuthenticatedToken, now: UInt64?
  ) -> Bool {
    guard request.command == UserCommandName.sealRequest else { return true }
    guard let sealed = SealedCommand(request), let inner = sealed.request,
      sealed.parameters.allSatisfy({ $0.description.unicodeScalars.count <= codeLimits.sealParameterLength }),
      token.claims.allows(sealed.command),
      let rule = rule(for: inner, of: token, now: now, isIntroduced: false)
    else { return false }
    return rule.factors.contains(.seal)
  }

  /// The factors that every command of the policy needs; none if the policy names no command.
  public var commonFactors: Factors {
    guard !commands.isEmpty else { return [] }
    return commands.values.reduce(.all) { $0.intersection($1.factors) }
  }

  /// The most seconds by which a token's `iat` may be ahead of the clock floor.
  public var maximumIssueAdvanceSeconds: UInt64 {
    min(maximumIssueAdvanceDays, Self.greatestIssueAdvanceDays) * 86_400
  }

  /// Returns the records of the parameters of a request, for the audit log. The commands of users have none, as the entry of
  /// their round names the user; except for `seal-request`, which names a command.
  package func auditedParameters(of request: borrowing Request) throws(CryptographyFailure) -> [AuditedParameter] {
    let isAudited =
      request.command == UserCommandName.sealRequest || !UserCommandName.contains(request.command, under: Self.self)
    guard let count = request.parameterCount, isAudited else { return [] }
    let isText = commandsAuditedAsText.contains(request.command)
    var parameters: [AuditedParameter] = []
    for index in 0..<count {
      let parameter = request.parameter(index)
      parameters.append(
        AuditedParameter(index: UInt8(index), isText ? .text(parameter) : .digest(try sha256(parameter.bytes))))
    }
    return parameters
  }

  /// Returns the commands that the policy names although neither the device nor `actuator` carries them out, sorted.
  package func commandsNotCarriedOut<Machine: Actuator & ~Copyable>(
    by actuator: borrowing Machine
  ) -> [BoundedText<32>] {
    sortedCommands.map(\.name).filter { !UserCommandName.contains($0, under: Self.self) && !actuator.carriesOut($0) }
  }

  /// Returns whether the policy names the key among the introducers.
  public func mayIntroduce(_ issuer: KeyID) -> Bool { introducers.contains(issuer) }

  /// The id of the key whose holder is the home of the audit log; nil if the log stays at the device.
  public var auditHome: KeyID? { auditRules.home }

  /// Returns true: the device tells a user's state if the policy names `user-state`.
  public static var knowsUserState: Bool { true }
  /// Returns true: the device makes requests for seals if the policy names `seal-request`, and it recognises refusals.
  public static var knowsSealRequests: Bool { true }

  /// Returns true: the ledger has spare authenticators and the owner's demands.
  public static var knowsAuthenticators: Bool { true }

  /// Returns true: the ledger takes bulletins.
  public static var knowsBulletins: Bool { true }

  /// Whether any command may come in a compatibility round.
  package var allowsCompatibility: Bool {
    commands.values.contains { $0.allowsCompatibility }
  }
}

extension DevicePolicy {
  /// A policy that names no command. It applies while `policy.json` cannot be read.
  package static let denyAll = DevicePolicy()

  /// The policy that `device init` writes for the simulated lock.
  public static let forSimulatedLock = DevicePolicy(commands: [
    BoundedText("lock"): CommandRule(factors: [.integrity, .device]),
    BoundedText("unlock"): CommandRule(factors: [.integrity, .device]),
    BoundedText("status"): CommandRule(factors: [.device]),
    BoundedText("configure"): CommandRule(factors: [.integrity, .device, .otp]),
    BoundedText("open-safe"): CommandRule(factors: [.integrity, .device, .seal]),
    UserCommandName.synchronise: CommandRule(factors: [.device]),
    UserCommandName.hostCode: CommandRule(factors: [.device]),
  ])
}

/// The reason that a policy file was refused as a whole.
public enum PolicyFault: Error, Equatable {
  /// The file does not exist, is not a regular file of the owner's, or cannot be read.
  case unreadable
  /// The file is not strict JSON, or is longer than 256 KiB. The mistake names the place.
  case malformed(JSONMistake)
  /// The file is strict JSON, but a member is missing, unknown, or of another type or range. The mistake names the member.
  case unexpected(JSONMistake)
  /// The file has a version that this program does not know.
  case newerVersion
  /// The device has a policy key, and the file is not a signed policy.
  case notSigned
  /// Another key than the device's policy key signed the policy, or the device has no policy key.
  case anotherKey
  /// The signature of the policy is wrong, or the cryptographic library failed.
  case notAuthentic
  /// The policy was signed for another device.
  case anotherDevice
  /// The policy has a lower number than the newest one that the device has taken, or is another one with the same number.
  case outdated(newest: UInt64)
  /// The ledger, which has the number of the newest policy, cannot be read or written.
  case unrecorded
  /// The policy file cannot be written.
  case unwritable(FileError)
}

extension FirmwarePolicy {
  /// Makes the same policy in a form that needs no heap; nil if it has more commands than there is room for, or rules that
  /// depend on parameters or circumstances.
  package init?(_ policy: DevicePolicy) {
    self.init(
      limits: policy.limits, acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC,
      maximumIssueAdvanceSeconds: policy.maximumIssueAdvanceSeconds, codeLimits: policy.codeLimits)
    // A microcontroller would ignore these rules.
    guard policy.conditions.isEmpty else { return nil }
    auditHome = policy.auditHome
    for (name, rule) in policy.sortedCommands {
      guard allow(name, rule) else { return nil }
    }
  }
}

extension DevicePolicy {
  /// Makes the same policy in the owner's form; nil if no ``DevicePolicy`` corresponds to it.
  package init?(_ policy: borrowing FirmwarePolicy) {
    let (days, rest) = policy.maximumIssueAdvanceSeconds.quotientAndRemainder(dividingBy: 86_400)
    guard rest == 0, days <= Self.greatestIssueAdvanceDays else { return nil }
    self.init(
      limits: policy.limits, acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC,
      maximumIssueAdvanceDays: days,
      codeLimits: policy.codeLimits)
    for index in 0..<policy.commandCount {
      let (name, rule) = policy.command(index)
      commands[name] = rule
    }
  }
}

/// The policy of one connection. It stays the same from M2 to the end of a round, even if the file changes meanwhile.
///
/// It is a class, so that the connection can renew it while its ``DeviceSession`` holds it. Only one thread uses it.
package final class SessionPolicy: Policy {
  private let ledger: Ledger?
  /// Whether the round for which ``rule(for:of:realClock:)`` was last asked is the token's first use of a command that asks for
  /// further factors then. Its acceptance introduces the token.
  private(set) var introduces = false

  /// Makes a policy that allows nothing yet. `ledger` says which tokens were introduced; without one, none was.
  package init(ledger: Ledger? = nil) { self.ledger = ledger }

  /// Whether the device has a real clock. Without one, a session estimates the time, and no condition is judged by that.
  package var hasClock = true

  /// Returns the rule for a request. A clock that is behind the clock floor has lost the time, and does not count.
  package func rule(
    for request: borrowing Request, of token: borrowing AuthenticatedToken, realClock: UInt64?
  ) -> CommandRule? {
    introduces = false
    let now = time(by: realClock)
    guard current.allowsSealRequest(request, of: token, now: now) else { return nil }
    guard let conditions = current.conditions[request.command] else { return rule(for: request.command) }
    let isIntroduced =
      conditions.dependsOnUse && ledger?.hasIntroduced(token, for: request.command) ?? false
    let rule = current.rule(
      for: request, of: token, now: now, isIntroduced: isIntroduced)
    introduces = conditions.dependsOnUse && !isIntroduced && rule != nil
    return rule
  }

  /// Returns the time by which conditions are judged; nil if it is not known.
  private func time(by realClock: UInt64?) -> UInt64? {
    guard hasClock, let clock = realClock else { return nil }
    return if let ledger { ledger.time(by: clock) } else { clock }
  }

  package static var knowsUserState: Bool { DevicePolicy.knowsUserState }
  package static var knowsAuthenticators: Bool { DevicePolicy.knowsAuthenticators }
  package static var knowsSealRequests: Bool { DevicePolicy.knowsSealRequests }
  package static var knowsBulletins: Bool { DevicePolicy.knowsBulletins }

  package var current = DevicePolicy.denyAll

  package func rule(for command: BoundedText<32>) -> CommandRule? { current.rule(for: command) }
  package var limits: TokenLimits { current.limits }
  package var commonFactors: Factors { current.commonFactors }
  package var acceptsUnsigned: Bool { current.acceptsUnsigned }
  package var acceptsMAC: Bool { current.acceptsMAC }
  package var acceptsDevelopment: Bool { current.acceptsDevelopment }
  package var codeLimits: CodeLimits { current.codeLimits }
  package var maximumIssueAdvanceSeconds: UInt64 { current.maximumIssueAdvanceSeconds }
  package func mayIntroduce(_ issuer: KeyID) -> Bool { current.mayIntroduce(issuer) }
  package var auditHome: KeyID? { current.auditHome }
}
