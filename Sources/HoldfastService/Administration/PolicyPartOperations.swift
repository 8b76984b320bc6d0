import HoldfastCore
import HoldfastFormats
import HoldfastIssuer

extension AdministrationOperation {
  /// The operations for parts of the policy: settings of some tokens, and rules about the posture of provers.
  static let policyParts: [AdministrationOperation] = [
    AdministrationOperation(
      "setSettings", .post, "/policy/settings", .admin,
      "Sets the settings of all tokens, or of those of an app or for a device.",
      body: Schema.scope + [Schema.Property("settings", .settings, required: true, "The settings."), reason],
      answer: .policy
    ) { (fleet, request) throws(AdministrationFault) in
      try request.setSettings(in: fleet)
      return try fleet.policyRecord()
    },
    AdministrationOperation(
      "removeSettings", .post, "/policy/settings/remove", .admin, "Removes settings that were set for the same tokens.",
      body: Schema.scope + [reason], answer: .policy
    ) { (fleet, request) throws(AdministrationFault) in
      try request.setSettings(in: fleet)
      return try fleet.policyRecord()
    },
    AdministrationOperation(
      "showPostureRules", .get, "/posture-rules", .read, "Shows the newest rules about the posture of provers.",
      answer: rules
    ) { (fleet, _) throws(AdministrationFault) in try fleet.postureRecord() },
    AdministrationOperation(
      "setPostureRules", .put, "/posture-rules", .admin,
      "Signs rules about the posture of provers, which provers fetch.",
      body: [
        Schema.Property("number", .integer(1...maximumInteger), required: true, "The number, above the one before."),
        Schema.Property("default", action, required: true, "The consequence of findings without a rule."),
        Schema.Property("unknown", action, required: true, "The most that follows from an unknown finding."),
        Schema.Property("rules", .map(action), required: true, "The consequences by the names of findings."),
        Schema.Property("until", .time, "The time from which newer rules are expected."), reason,
      ], answer: rules
    ) { (fleet, request) throws(AdministrationFault) in
      let names = ["until", "default", "unknown", "rules"]
      try request.checkFindings()
      try fleet.setPostureRules(
        number: request.body.member("number")?.value.number ?? 0,
        names.compactMap { name in request.body.member(name).map { (name, $0.value) } }, by: try request.actor())
      return try fleet.postureRecord()
    },
  ]

  private static let reason = Schema.Property(
    "reason", .text(1...255), "The reason, which the log of changes keeps.")

  private static let action = Schema.choice(["ignore", "warn", "refuse", "wipe"])

  private static let rules = Schema.object([
    Schema.Property("number", .nullable(.anyInteger), required: true, "Their number; null if there are none."),
    Schema.Property("rules", .nullable(.text(1...3072)), required: true, "The rules as provers get them, a JWS."),
  ])
}

extension AdministrationRequest {
  /// Sets the settings in the body; removes those of the same tokens if there are none in it.
  fileprivate func setSettings(in fleet: Fleet) throws(AdministrationFault) {
    let (app, device): (BoundedText<64>?, DeviceID?) = (
      try text("app"), body.member("device")?.value.text.flatMap { HoldfastFormats.fixedBytes(hexadecimal: $0) }
    )
    let version: AppVersion? = body.member("version") == nil ? nil : try self.version("version")
    var settings: AppSettings?
    if let member = body.member("settings") {
      do throws(JSONMistake) { settings = try AppSettings(member) } catch { throw .mistake(error) }
    }
    // A removal has no settings: only the scope counts.
    guard let known = settings ?? AppSettings(.bytes, []) else { throw .conflict(.tooLong) }
    let scope = ScopedSettings(app: app, version: version, device: device, settings: known)
    guard scope != nil || version == nil else {
      throw .mistake(JSONMistake(at: [.member("app")], expected: .presence))
    }
    try fleet.set(settings: settings, of: scope, removing: settings == nil, by: actor())
  }

  /// Checks the names of findings, of which provers may know more than this service.
  fileprivate func checkFindings() throws(AdministrationFault) {
    let members = body.member("rules")?.value.members ?? []
    guard members.count <= 64 else {
      throw .mistake(JSONMistake(at: [.member("rules")], expected: .atMost(64)))
    }
    for (name, _) in members {
      let isName =
        (1...32).contains(name.utf8.count) && name.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d }
      guard isName else {
        throw .mistake(JSONMistake(at: [.member("rules"), .member(name)], expected: .form("the name of a finding")))
      }
    }
  }
}

extension Fleet {
  fileprivate func postureRecord() throws(AdministrationFault) -> JSONValue {
    do throws(FleetFault) {
      let rules = try postureRules()
      return .object([
        ("number", rules.map { .integer($0.number) } ?? .null), ("rules", rules.map { .string($0.text) } ?? .null),
      ])
    } catch { throw .fleet(error) }
  }
}
