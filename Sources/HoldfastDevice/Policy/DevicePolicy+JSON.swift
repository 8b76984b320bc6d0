import HoldfastCore
import HoldfastFormats

extension DevicePolicy {
  /// The length of the longest policy file, in bytes.
  package static let maximumByteCount = 256 * 1024
  private static let version: UInt64 = 1

  /// Reads `policy.json`, which is strict JSON. The members `version` and `commands` are required; unknown members are
  /// refused.
  ///
  /// - Throws: ``PolicyFault`` with the member that is wrong, and its line.
  public init(json bytes: [UInt8]) throws(PolicyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch {
      throw .malformed(
        JSONMistake(in: bytes, byteLimit: Self.maximumByteCount) ?? JSONMistake(at: [], expected: .syntax))
    }
    do throws(PolicyFault) { self = try DevicePolicy(member: JSONMember(value)) } catch {
      guard case .unexpected(let mistake) = error else { throw error }
      throw .unexpected(mistake.located(in: bytes))
    }
  }

  /// Reads the object of `policy.json`.
  ///
  /// - Throws: `newerVersion`, `unexpected`.
  init(member policy: JSONMember) throws(PolicyFault) {
    if let version = policy.value["version"]?.number, version > Self.version { throw .newerVersion }
    do throws(JSONMistake) { self = try DevicePolicy(policy) } catch { throw .unexpected(error) }
  }

  private init(_ policy: JSONMember) throws(JSONMistake) {
    guard policy.value.members != nil else { throw policy.mistake(.object) }
    _ = try policy.required("version").integer(Self.version...Self.version)
    try policy.checkMembers(Self.memberNames)
    self.init()
    acceptsUnsigned = try policy.member("accept_unsigned")?.flag() ?? false
    acceptsDevelopment = try policy.member("accept_development")?.flag() ?? false
    if let issuer = policy.member("issuer") {
      try issuer.checkMembers(["mac"])
      acceptsMAC = try issuer.member("mac")?.flag() ?? false
    }
    limits = try policy.limits(otherwise: TokenLimits())
    maximumIssueAdvanceDays =
      try policy.member("maximum_issue_advance_days")?.integer(0...Self.greatestIssueAdvanceDays)
      ?? Self.usualIssueAdvanceDays
    if let codes = policy.member("codes") { codeLimits = try CodeLimits(codes) }
    if let audit = policy.member("audit") {
      auditRules = try AuditRules(audit)
    }
    for member in try policy.member("introducers")?.elements() ?? [] {
      guard let text = member.value.text, let keyID: KeyID = fixedBytes(hexadecimal: text),
        introducers.count < Limit.issuers.linux, introducers.insert(keyID).inserted
      else { throw member.mistake(.hexadecimal(digitCount: 16)) }
    }
    for (name, rule) in try policy.required("commands").members(atMost: Self.maximumCommandCount) {
      guard let command = BoundedText<32>(name), !command.isEmpty else { throw rule.mistake(.byteCount(1...32)) }
      commands[command] = try CommandRule(rule, limits: limits)
      let conditions = try CommandConditions(rule: rule)
      if !conditions.isEmpty { self.conditions[command] = conditions }
      if try rule.isAuditedAsText { commandsAuditedAsText.insert(command) }
      if let text = rule.member("text") { texts[command] = try RequestTemplate(text) }
    }
  }

  /// Returns the text of `policy.json`. It has every member, except `accept_development`, `issuer`, `audit` and `introducers` if
  /// they have their defaults.
  public func json() -> [UInt8] {
    return JSONValue.object(
      [("version", .integer(Self.version)), ("accept_unsigned", .bool(acceptsUnsigned))]
        + (acceptsDevelopment ? [("accept_development", .bool(true))] : [])
        + (acceptsMAC ? [("issuer", .object([("mac", .bool(true))]))] : []) + limits.members()
        + [
          ("maximum_issue_advance_days", .integer(maximumIssueAdvanceDays)), ("codes", codeLimits.json()),
        ]
        + (auditRules == AuditRules() ? [] : [("audit", auditRules.json())])
        + (introducers.isEmpty
          ? [] : [("introducers", .array(introducers.map { hexadecimal($0) }.sorted().map { .string($0) }))])
        + [
          (
            "commands",
            .object(
              sortedCommands.map {
                let isText = commandsAuditedAsText.contains($0.name)
                let further =
                  (conditions[$0.name]?.members() ?? [])
                  + (texts[$0.name].map { [("text", JSONValue.string($0.text))] } ?? [])
                return ($0.name.description, $0.rule.json(fileLimits: limits, isAuditedAsText: isText, further))
              })
          )
        ]
    ).pretty()
  }

  /// The commands and rules, sorted by the UTF-8 bytes of the names.
  var sortedCommands: [(name: BoundedText<32>, rule: CommandRule)] {
    commands.sorted { $0.key.bytes.precedes($1.key.bytes) }.map { ($0.key, $0.value) }
  }

  private static let memberNames = [
    "version", "accept_unsigned", "accept_development", "issuer", "generation_floor", "minimum_version",
    "maximum_age_seconds",
    "maximum_issue_advance_days", "codes", "audit", "introducers", "commands",
  ]
}

extension AuditRules {
  fileprivate init(_ audit: JSONMember) throws(JSONMistake) {
    try audit.checkMembers(["entries", "home", "when_full"])
    self.init()
    bound = try audit.member("entries")?.integer(DevicePolicy.auditBounds)
    if let home = audit.member("home") {
      guard let text = home.value.text, let keyID: KeyID = fixedBytes(hexadecimal: text) else {
        throw home.mistake(.hexadecimal(digitCount: 16))
      }
      self.home = keyID
    }
    guard bound != nil || home != nil else { throw audit.mistake(.form("an object with entries, home or both")) }
    guard let whenFull = audit.member("when_full") else { return }
    guard bound != nil, home != nil else {
      throw whenFull.mistake(.form("absent, because it needs both entries and home"))
    }
    switch whenFull.value.text {
    case "refuse": refusesWhenFull = true
    case "drop": refusesWhenFull = false
    default: throw whenFull.mistake(.text(of: ["refuse", "drop"]))
    }
  }

  fileprivate func json() -> JSONValue {
    .object(
      (bound.map { [("entries", .integer($0))] } ?? [])
        + (home.map { [("home", .string(hexadecimal($0)))] } ?? [])
        + (refusesWhenFull ? [("when_full", .string("refuse"))] : []))
  }
}

extension CommandRule {
  /// Reads a rule. A limit that the command names overrides the file's limit.
  fileprivate init(_ rule: JSONMember, limits: TokenLimits) throws(JSONMistake) {
    try rule.checkMembers(
      ["factors", "generation_floor", "minimum_version", "maximum_age_seconds", "compatibility", "audit", "text"]
        + CommandConditions.memberNames)
    self.init(
      factors: try Factors(rule.required("factors")), limits: try rule.limits(otherwise: limits),
      allowsCompatibility: try rule.member("compatibility")?.flag() ?? false)
  }

  fileprivate func json(
    fileLimits: TokenLimits, isAuditedAsText: Bool, _ further: [(String, JSONValue)]
  ) -> JSONValue {
    let names = factors.names.map { JSONValue.string($0) }
    return .object(
      [("factors", .array(names))] + limits.members(differingFrom: fileLimits)
        + [("compatibility", .bool(allowsCompatibility))] + (isAuditedAsText ? [("audit", .string("text"))] : [])
        + further)
  }
}

extension CodeLimits {
  fileprivate init(_ codes: JSONMember) throws(JSONMistake) {
    try codes.checkMembers(["counter_look_ahead", "clock_tolerance_seconds", "seal_parameter_length"])
    self.init()
    counterLookAhead = try codes.member("counter_look_ahead")?.integer(1...100) ?? counterLookAhead
    clockToleranceSeconds = try codes.member("clock_tolerance_seconds")?.integer(1...600) ?? clockToleranceSeconds
    if let length = try codes.member("seal_parameter_length")?.integer(1...64) { sealParameterLength = Int(length) }
  }

  fileprivate func json() -> JSONValue {
    .object([
      ("counter_look_ahead", .integer(counterLookAhead)), ("clock_tolerance_seconds", .integer(clockToleranceSeconds)),
      ("seal_parameter_length", .integer(UInt64(sealParameterLength))),
    ])
  }
}

extension Factors {
  /// Reads an array of names, each of which occurs at most once.
  init(_ list: JSONMember) throws(JSONMistake) {
    self = []
    for name in try list.elements() {
      guard let factor = Factors.named.first(where: { name.value.text == $0.name })?.factor, insert(factor).inserted
      else { throw name.mistake(.text(of: Factors.named.map(\.name))) }
    }
  }

  /// The factors with their names in policy files.
  static let named: [(name: String, factor: Factors)] = [
    ("integrity", .integrity), ("device", .device), ("otp", .otp), ("seal", .seal),
  ]

  /// The names of the factors in the set.
  package var names: [String] { Self.named.filter { contains($0.factor) }.map(\.name) }
}

extension TokenLimits {
  /// Returns all members, or only those that differ from `other`.
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

extension JSONMember {
  /// Whether the member `audit` of a rule is `"text"`. By default it is `"digest"`.
  fileprivate var isAuditedAsText: Bool {
    get throws(JSONMistake) {
      guard let audit = member("audit") else { return false }
      switch audit.value.text {
      case "text": return true
      case "digest": return false
      default: throw audit.mistake(.text(of: ["digest", "text"]))
      }
    }
  }

  fileprivate func limits(otherwise other: TokenLimits) throws(JSONMistake) -> TokenLimits {
    var limits = other
    limits.generationFloor = try member("generation_floor")?.integer() ?? other.generationFloor
    if let version = member("minimum_version") {
      var numbers: [UInt64] = []
      for element in try version.elements(count: 3) { numbers.append(try element.integer()) }
      limits.minimumVersion = AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
    }
    if let age = member("maximum_age_seconds") {
      limits.maximumAgeSeconds = age.value == .null ? nil : try age.integer()
    }
    return limits
  }
}
