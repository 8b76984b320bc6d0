import HoldfastCore

/// A policy of a device's owner in a form that needs no heap. Commands that it does not name are refused.
public struct FirmwarePolicy: ~Copyable, Policy, Sendable {
  /// The most commands that a policy may name.
  package static var maximumCommandCount: Int { Limit.commands.microcontroller }

  /// Whether tokens without a signature are accepted.
  public let acceptsUnsigned: Bool
  /// Whether tokens are accepted whose issuer shares a MAC key with the device.
  public let acceptsMAC: Bool
  /// The limits for commands that are not in the policy.
  public let limits: TokenLimits
  /// The limits of the search for codes.
  public let codeLimits: CodeLimits
  /// The most seconds by which a token's `iat` may be ahead of the clock floor.
  public let maximumIssueAdvanceSeconds: UInt64
  /// Returns true: the device takes bulletins, as far as its store has room for them.
  public static var knowsBulletins: Bool { true }
  /// The id of the key whose holder is the home of the audit log; nil if the log stays at the device.
  public package(set) var auditHome: KeyID?

  private let pin = Pinned()
  private var names = InlineArray<16, BoundedText<32>>(repeating: BoundedText())
  private var rules = InlineArray<16, CommandRule> { _ in CommandRule(factors: .all) }
  /// The number of commands in the policy, at most ``maximumCommandCount``.
  package private(set) var commandCount = 0

  /// Makes a policy that names no command.
  ///
  /// - Parameter maximumIssueAdvanceSeconds: the most seconds by which a token's `iat` may be ahead of the clock floor.
  @inline(never)
  package init(
    limits: TokenLimits, acceptsUnsigned: Bool, acceptsMAC: Bool, maximumIssueAdvanceSeconds: UInt64,
    codeLimits: CodeLimits
  ) {
    self.limits = limits
    self.acceptsUnsigned = acceptsUnsigned
    self.acceptsMAC = acceptsMAC
    self.maximumIssueAdvanceSeconds = maximumIssueAdvanceSeconds
    self.codeLimits = codeLimits
  }

  /// Adds a command. Returns whether it was added: false if the policy is full or names the command already.
  package mutating func allow(_ command: BoundedText<32>, _ rule: CommandRule) -> Bool {
    guard commandCount < Self.maximumCommandCount, self.rule(for: command) == nil else { return false }
    names[commandCount] = command
    rules[commandCount] = rule
    commandCount += 1
    return true
  }

  /// Returns the rule of a command; nil if the policy does not name it.
  public func rule(for command: BoundedText<32>) -> CommandRule? {
    for index in 0..<commandCount where names[index] == command { return rules[index] }
    return nil
  }

  /// Returns the name and the rule of the command at an index below ``commandCount``.
  package func command(_ index: Int) -> (name: BoundedText<32>, rule: CommandRule) {
    precondition(index < commandCount)
    return (names[index], rules[index])
  }

  /// The factors that every command of the policy needs; none if the policy names no command.
  public var commonFactors: Factors {
    guard commandCount > 0 else { return [] }
    var common = Factors.all
    for index in 0..<commandCount { common.formIntersection(rules[index].factors) }
    return common
  }
}

extension FirmwarePolicy {
  /// Writes `[unsigned, MAC, advance, limits, [look-ahead, tolerance, parameter length], [[command, factors, limits,
  /// compatibility] …]]`. Limits are `[generation, [major, minor, patch], age / null]`, times are in seconds, and switches
  /// are 0 or 1.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 6)
    try sink.appendCBOR(unsigned: acceptsUnsigned ? 1 : 0)
    try sink.appendCBOR(unsigned: acceptsMAC ? 1 : 0)
    try sink.appendCBOR(unsigned: maximumIssueAdvanceSeconds)
    try limits.encode(into: &sink)
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: codeLimits.counterLookAhead)
    try sink.appendCBOR(unsigned: codeLimits.clockToleranceSeconds)
    try sink.appendCBOR(unsigned: UInt64(codeLimits.sealParameterLength))
    try sink.appendCBOR(array: commandCount)
    for index in 0..<commandCount {
      try sink.appendCBOR(array: 4)
      let name = names[index]
      try sink.appendCBOR(text: name.bytes)
      try sink.appendCBOR(unsigned: UInt64(rules[index].factors.rawValue))
      try rules[index].limits.encode(into: &sink)
      try sink.appendCBOR(unsigned: rules[index].allowsCompatibility ? 1 : 0)
    }
  }

  package static func decode(_ reader: inout CBORReader) throws(EncodingFault) -> FirmwarePolicy {
    try reader.array(of: 6)
    let acceptsUnsigned = try reader.flag()
    let acceptsMAC = try reader.flag()
    let maximumIssueAdvanceSeconds = try reader.unsigned()
    let limits = try TokenLimits(&reader)
    try reader.array(of: 3)
    let codeLimits = CodeLimits(
      counterLookAhead: try reader.unsigned(within: 1...100),
      clockToleranceSeconds: try reader.unsigned(within: 1...600),
      sealParameterLength: Int(try reader.unsigned(within: 1...64)))
    var policy = FirmwarePolicy(
      limits: limits, acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC,
      maximumIssueAdvanceSeconds: maximumIssueAdvanceSeconds, codeLimits: codeLimits)
    for _ in 0..<(try reader.arrayHead()) {
      try reader.array(of: 4)
      guard let name = BoundedText<32>(try reader.textString()),
        let factors = UInt8(exactly: try reader.unsigned()), factors <= Factors.all.rawValue
      else { throw .unexpected }
      let rule = CommandRule(
        factors: Factors(rawValue: factors), limits: try TokenLimits(&reader),
        allowsCompatibility: try reader.flag())
      guard policy.allow(name, rule) else { throw .unexpected }
    }
    return policy
  }
}

extension TokenLimits {
  fileprivate func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: generationFloor)
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: minimumVersion.major)
    try sink.appendCBOR(unsigned: minimumVersion.minor)
    try sink.appendCBOR(unsigned: minimumVersion.patch)
    guard let maximumAgeSeconds else { return try sink.appendCBORNull() }
    try sink.appendCBOR(unsigned: maximumAgeSeconds)
  }

  fileprivate init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 3)
    let generationFloor = try reader.unsigned()
    try reader.array(of: 3)
    let version = AppVersion(
      major: try reader.unsigned(), minor: try reader.unsigned(), patch: try reader.unsigned())
    let age: UInt64?
    if reader.null() { age = nil } else { age = try reader.unsigned() }
    self.init(generationFloor: generationFloor, minimumVersion: version, maximumAgeSeconds: age)
  }
}

extension CBORReader {
  /// Reads 0 or 1 as a Boolean.
  package mutating func flag() throws(EncodingFault) -> Bool {
    try unsigned(within: 0...1) == 1
  }

  package mutating func unsigned(within range: ClosedRange<UInt64>) throws(EncodingFault) -> UInt64 {
    let value = try unsigned()
    guard range.contains(value) else { throw .unexpected }
    return value
  }
}
