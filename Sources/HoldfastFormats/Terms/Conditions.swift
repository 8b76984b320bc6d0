import HoldfastCore

/// The conditions under which an issuer gives tokens to provers: how long a prover may go without the issuer, rules about versions,
/// and settings of the app.
public struct Conditions: Sendable, Equatable {
  /// The time for which a prover may prove without enrolling again, in seconds from the issue, 1 to 10 years; nil for no limit.
  public var offlineSeconds: UInt64?
  /// The settings of the app; nil for none.
  public var settings: AppSettings?
  /// The rules about versions, at most 32.
  public var rules: [ComplianceRule] = []

  /// Creates conditions that ask for nothing.
  public init() {}

  /// Whether there are no conditions.
  public var isEmpty: Bool { offlineSeconds == nil && settings == nil && rules.isEmpty }
}

extension Conditions {
  /// The names of the members.
  package static let memberNames = ["offline_seconds", "settings", "compliance"]

  /// Reads the members of an object that may have others.
  ///
  /// - Throws: The first mistake in a member.
  package init(_ object: JSONMember) throws(JSONMistake) {
    if let seconds = object.member("offline_seconds") {
      offlineSeconds = try seconds.integer(1...(10 * 366 * 24 * 60 * 60))
    }
    if let settings = object.member("settings") { self.settings = try AppSettings(settings) }
    if let compliance = object.member("compliance") {
      let elements = try compliance.elements()
      guard elements.count <= ComplianceRule.maximumCount else {
        throw compliance.mistake(.atMost(ComplianceRule.maximumCount))
      }
      for element in elements { rules.append(try ComplianceRule(element)) }
    }
  }

  /// The members, without those that are not set.
  package var members: [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if let offlineSeconds { members.append(("offline_seconds", .integer(offlineSeconds))) }
    if let settings { members.append(("settings", settings.json)) }
    if !rules.isEmpty { members.append(("compliance", .array(rules.map(\.json)))) }
    return members
  }
}
