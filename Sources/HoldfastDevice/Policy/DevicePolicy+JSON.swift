import HoldfastCore
import HoldfastJSON

extension DevicePolicy {
  /// The longest policy, in bytes.
  public static let maximumByteCount = 256 * 1024
  private static let version: UInt64 = 1

  /// Reads `policy.json`: strict JSON; `version` and `commands` are required, members that nobody knows are refused.
  public init(json bytes: [UInt8]) throws(PolicyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch { throw .malformed }
    guard let version = value["version"]?.number else { throw .unexpected }
    guard version <= Self.version else { throw .newerVersion }
    guard version == Self.version, value.hasOnly(Self.memberNames), let named = value["commands"]?.members,
      named.count <= Self.maximumCommandCount
    else { throw .unexpected }
    self.init()
    acceptsUnsigned = try value.flag("accept_unsigned") ?? false
    if let issuer = value["issuer"] { acceptsMAC = try Self.acceptsMAC(issuer) }
    limits = try value.limits(otherwise: TokenLimits())
    maximumIssueAdvanceDays = try value.number("maximum_issue_advance_days") ?? Self.usualIssueAdvanceDays
    guard maximumIssueAdvanceDays <= Self.greatestIssueAdvanceDays else { throw .unexpected }
    if let codes = value["codes"] { codeLimits = try CodeLimits(codes) }
    for (name, rule) in named {
      guard let command = BoundedText<32>(name), !command.isEmpty else { throw .unexpected }
      commands[command] = try CommandRule(rule, limits: limits)
    }
  }

  /// Reads `issuer`: how issuers may vouch for tokens besides signatures.
  private static func acceptsMAC(_ issuer: JSONValue) throws(PolicyFault) -> Bool {
    guard issuer.hasOnly(["mac"]) else { throw .unexpected }
    return try issuer.flag("mac") ?? false
  }

  /// The text of `policy.json`, every member written out but `issuer` where it would allow nothing.
  public func json() -> [UInt8] {
    return JSONValue.object(
      [("version", .integer(Self.version)), ("accept_unsigned", .bool(acceptsUnsigned))]
        + (acceptsMAC ? [("issuer", .object([("mac", .bool(true))]))] : []) + limits.members()
        + [
          ("maximum_issue_advance_days", .integer(maximumIssueAdvanceDays)), ("codes", codeLimits.json()),
          ("commands", .object(sortedCommands.map { ($0.name.description, $0.rule.json(fileLimits: limits)) })),
        ]
    ).pretty()
  }

  /// By the UTF-8 bytes of the names.
  var sortedCommands: [(name: BoundedText<32>, rule: CommandRule)] {
    commands.sorted { $0.key.bytes.precedes($1.key.bytes) }.map { ($0.key, $0.value) }
  }

  private static let memberNames = [
    "version", "accept_unsigned", "issuer", "generation_floor", "minimum_version", "maximum_age_seconds",
    "maximum_issue_advance_days", "codes", "commands",
  ]
}

extension CommandRule {
  /// A limit that the command names takes the place of the file's.
  fileprivate init(_ value: JSONValue, limits: TokenLimits) throws(PolicyFault) {
    guard value.hasOnly(["factors", "generation_floor", "minimum_version", "maximum_age_seconds", "compatibility"]),
      let names = value["factors"]?.elements
    else { throw .unexpected }
    var factors: Factors = []
    for name in names {
      guard let factor = namedFactors.first(where: { name.text == $0.name })?.factor, factors.insert(factor).inserted
      else { throw .unexpected }
    }
    self.init(
      factors: factors, limits: try value.limits(otherwise: limits),
      allowsCompatibility: try value.flag("compatibility") ?? false)
  }

  fileprivate func json(fileLimits: TokenLimits) -> JSONValue {
    let names = namedFactors.filter { factors.contains($0.factor) }.map { JSONValue.string($0.name) }
    return .object(
      [("factors", .array(names))] + limits.members(differingFrom: fileLimits)
        + [("compatibility", .bool(allowsCompatibility))])
  }
}

extension CodeLimits {
  fileprivate init(_ value: JSONValue) throws(PolicyFault) {
    guard value.hasOnly(["counter_look_ahead", "clock_tolerance_seconds", "seal_parameter_length"]) else {
      throw .unexpected
    }
    self.init()
    counterLookAhead = try value.number("counter_look_ahead", 1...100) ?? counterLookAhead
    clockToleranceSeconds = try value.number("clock_tolerance_seconds", 1...600) ?? clockToleranceSeconds
    sealParameterLength = Int(try value.number("seal_parameter_length", 1...64) ?? UInt64(sealParameterLength))
  }

  fileprivate func json() -> JSONValue {
    .object([
      ("counter_look_ahead", .integer(counterLookAhead)), ("clock_tolerance_seconds", .integer(clockToleranceSeconds)),
      ("seal_parameter_length", .integer(UInt64(sealParameterLength))),
    ])
  }
}

private let namedFactors: [(name: String, factor: Factors)] = [
  ("integrity", .integrity), ("device", .device), ("otp", .otp), ("seal", .seal),
]

extension TokenLimits {
  /// All members, or those alone that differ from `other`.
  fileprivate func members(differingFrom other: TokenLimits? = nil) -> [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if generationFloor != other?.generationFloor { members.append(("generation_floor", .integer(generationFloor))) }
    if minimumVersion != other?.minimumVersion {
      let numbers = [minimumVersion.major, minimumVersion.minor, minimumVersion.patch]
      members.append(("minimum_version", .array(numbers.map { .integer($0) })))
    }
    if other == nil || maximumAgeSeconds != other?.maximumAgeSeconds {
      members.append(("maximum_age_seconds", maximumAgeSeconds.map { .integer($0) } ?? .null))
    }
    return members
  }
}

extension JSONValue {
  fileprivate func flag(_ name: String) throws(PolicyFault) -> Bool? {
    guard let value = self[name] else { return nil }
    guard let flag = value.flag else { throw .unexpected }
    return flag
  }

  fileprivate func number(_ name: String) throws(PolicyFault) -> UInt64? {
    guard let value = self[name] else { return nil }
    guard let number = value.number else { throw .unexpected }
    return number
  }

  fileprivate func number(_ name: String, _ range: ClosedRange<UInt64>) throws(PolicyFault) -> UInt64? {
    guard let number = try number(name) else { return nil }
    guard range.contains(number) else { throw .unexpected }
    return number
  }

  fileprivate func limits(otherwise other: TokenLimits) throws(PolicyFault) -> TokenLimits {
    var limits = other
    limits.generationFloor = try number("generation_floor") ?? other.generationFloor
    if let version = self["minimum_version"] {
      guard let numbers = version.elements?.compactMap(\.number), numbers.count == 3, version.elements?.count == 3
      else { throw .unexpected }
      limits.minimumVersion = AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
    }
    if let age = self["maximum_age_seconds"] {
      limits.maximumAgeSeconds = age == .null ? nil : try number("maximum_age_seconds")
    }
    return limits
  }
}

extension Span where Element == UInt8 {
  /// The order of UTF-8 bytes.
  fileprivate func precedes(_ other: Span<UInt8>) -> Bool {
    for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
      return self[index] < other[index]
    }
    return count < other.count
  }
}
