/// A rule about the version of the app or of its operating system.
///
/// The rule says which versions comply; its action is for all others. Several rules must all be met, so that a range is also two
/// rules.
public struct ComplianceRule: Sendable, Equatable {
  /// The thing whose version counts.
  public enum Subject: String, Sendable, CaseIterable {
    /// The app, with the version that the issuer approved.
    case app
    /// The operating system of the prover's host: `VERSION_ID` of `/etc/os-release`.
    case os
  }

  /// The comparison of a version with those of the rule.
  public enum Comparison: String, Sendable, CaseIterable {
    case less = "<"
    case atMost = "<="
    case equal = "="
    case different = "!="
    case atLeast = ">="
    case greater = ">"
    /// The version is one of those of the rule, at most eight.
    case oneOf = "in"
    /// The version is at least the rule's first one, and less than its second one.
    case range
  }

  /// The consequence for a version that does not comply, from the mildest to the gravest.
  public enum Action: String, Sendable, CaseIterable, Comparable {
    /// The prover warns.
    case warn
    /// The prover proves nothing until it is enrolled again.
    case block
    /// The prover removes the enrolment.
    case wipe

    /// Returns whether `left` is the milder action.
    public static func < (left: Action, right: Action) -> Bool {
      allCases.firstIndex(of: left)! < allCases.firstIndex(of: right)!
    }
  }

  /// The thing whose version counts.
  public let subject: Subject
  /// The only operating system to which a rule about the system applies: `ID` of `/etc/os-release`, 1 to 32 bytes. A rule with
  /// nil applies to every system.
  public let system: String?
  /// The comparison.
  public let comparison: Comparison
  /// The versions with which the subject's is compared: 1 to 8 for `in`, 2 for a range, otherwise one.
  public let versions: [DottedVersion]
  /// The consequence if the version does not comply.
  public let action: Action

  /// The largest number of rules.
  public static let maximumCount = 32
  /// The largest number of versions of a rule.
  public static let maximumVersionCount = 8
  private static let maximumSystemByteCount = 32

  /// Creates a rule; nil if the number of versions does not fit the comparison, a range is empty, the name of a system is out of
  /// bounds, or a rule about the app names a system.
  public init?(
    _ subject: Subject, of system: String? = nil, _ comparison: Comparison, _ versions: [DottedVersion],
    otherwise action: Action
  ) {
    guard Self.counts(comparison).contains(versions.count),
      comparison != .range || versions[0] < versions[1],
      system == nil || subject == .os && (1...Self.maximumSystemByteCount).contains(system!.utf8.count)
    else { return nil }
    (self.subject, self.system, self.comparison) = (subject, system, comparison)
    (self.versions, self.action) = (versions, action)
  }

  private static func counts(_ comparison: Comparison) -> ClosedRange<Int> {
    switch comparison {
    case .oneOf: 1...maximumVersionCount
    case .range: 2...2
    default: 1...1
    }
  }

  /// Returns whether a version complies.
  public func isMet(by version: DottedVersion) -> Bool {
    switch comparison {
    case .less: version < versions[0]
    case .atMost: version <= versions[0]
    case .equal: version == versions[0]
    case .different: version != versions[0]
    case .atLeast: version >= versions[0]
    case .greater: version > versions[0]
    case .oneOf: versions.contains(version)
    case .range: version >= versions[0] && version < versions[1]
    }
  }

  /// The versions that comply, for people, such as `at least 12`.
  package var text: String {
    let names = versions.map(\.text)
    let (first, all) = (names[0], names.joined(separator: ", "))
    let words =
      switch comparison {
      case .less: "less than \(first)"
      case .atMost: "at most \(first)"
      case .equal: first
      case .different: "other than \(first)"
      case .atLeast: "at least \(first)"
      case .greater: "greater than \(first)"
      case .oneOf: names.count == 1 ? first : "one of \(all)"
      case .range: "at least \(first) and less than \(names[1])"
      }
    return words
  }
}

extension ComplianceRule {
  /// Reads `{"subject": "os", "os": "debian", "operator": ">=", "versions": ["12"], "action": "block"}`, without `os` for any
  /// system and for a rule about the app.
  ///
  /// - Throws: The first mistake in the member.
  package init(_ rule: JSONMember) throws(JSONMistake) {
    try rule.checkMembers(["subject", "os", "operator", "versions", "action"])
    let subject: Subject = try Self.choice(rule.required("subject"))
    let comparison: Comparison = try Self.choice(rule.required("operator"))
    let action: Action = try Self.choice(rule.required("action"))
    let system = try rule.member("os").map { (member) throws(JSONMistake) in
      guard subject == .os else { throw member.mistake(.form("absent from a rule about the app")) }
      return try member.text(byteCounts: 1...Self.maximumSystemByteCount)
    }
    let list = try rule.required("versions")
    let elements = try list.elements()
    let counts = Self.counts(comparison)
    guard elements.count <= counts.upperBound else { throw list.mistake(.atMost(counts.upperBound)) }
    guard elements.count >= counts.lowerBound else { throw list.mistake(.array(elementCount: counts.lowerBound)) }
    var versions: [DottedVersion] = []
    for element in elements {
      guard let version = element.value.text.flatMap(DottedVersion.init) else {
        throw element.mistake(.form("numbers with dots between them, such as 12.4"))
      }
      versions.append(version)
    }
    guard let known = ComplianceRule(subject, of: system, comparison, versions, otherwise: action) else {
      throw list.mistake(.form("a lower version before a higher one"))
    }
    self = known
  }

  private static func choice<Value: RawRepresentable<String> & CaseIterable>(
    _ member: JSONMember
  ) throws(JSONMistake) -> Value {
    guard let value = member.value.text.flatMap(Value.init(rawValue:)) else {
      throw member.mistake(.text(of: Value.allCases.map(\.rawValue)))
    }
    return value
  }

  /// The rule as ``init(_:)`` reads it.
  package var json: JSONValue {
    .object(
      [("subject", .string(subject.rawValue))] + (system.map { [("os", .string($0))] } ?? []) + [
        ("operator", .string(comparison.rawValue)), ("versions", .array(versions.map { .string($0.text) })),
        ("action", .string(action.rawValue)),
      ])
  }
}

/// A version of one to eight numbers with dots between them. Missing numbers count as 0, so that 12 and 12.0 are equal.
public struct DottedVersion: Sendable, Comparable {
  /// The text as it was written, at most 32 bytes.
  public let text: String
  private let numbers: [UInt64]

  private static let maximumNumberCount = 8
  private static let maximumByteCount = 32

  /// Parses a text such as `24.04`. Zeros before a number do not count.
  ///
  /// - Returns: Nil for anything but digits and dots between them, for more than 32 bytes or eight numbers, and for a number above
  ///   2^53 - 1.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.maximumByteCount else { return nil }
    var numbers: [UInt64] = []
    for part in text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      guard !part.isEmpty, numbers.count < Self.maximumNumberCount else { return nil }
      var number: UInt64 = 0
      for digit in part {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit), number < 1 << 53 else { return nil }
        number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
      }
      guard number < 1 << 53 else { return nil }
      numbers.append(number)
    }
    self.text = text
    self.numbers = numbers
  }

  private func number(_ index: Int) -> UInt64 { index < numbers.count ? numbers[index] : 0 }

  /// Returns whether the versions are equal, number by number.
  public static func == (left: DottedVersion, right: DottedVersion) -> Bool {
    (0..<maximumNumberCount).allSatisfy { left.number($0) == right.number($0) }
  }

  /// Returns whether `left` is the older version.
  public static func < (left: DottedVersion, right: DottedVersion) -> Bool {
    for index in 0..<maximumNumberCount where left.number(index) != right.number(index) {
      return left.number(index) < right.number(index)
    }
    return false
  }
}
