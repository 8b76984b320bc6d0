import HoldfastCore

/// The claims of a measurement token, as the issuer reported them.
///
/// The prover cannot read the token, which is encrypted to the device. The report is not authenticated, and no decision
/// depends on it. It only shows people and programs when to enrol again. The token's id is not in it: see docs/couriers.md, "What an
/// attacker can do".
package struct IssuanceReport: Equatable, Sendable {
  private let claims: [Claim: ClaimValue]

  /// The members of the report, in the order in which they are written, and the claims that they tell.
  private static let members: [(name: String, claim: Claim)] = [
    ("issuer", .issuer), ("subject", .subject), ("version", .version), ("generation", .generation),
    ("issued", .issuedAt), ("expires", .expires), ("maximum_uses", .maximumUses), ("commands", .commands),
    ("user", .user),
  ]

  /// The names of the report's members.
  package static var names: [String] { members.map(\.name) }

  /// Makes the report of a token with these claims, of which it keeps those that it tells.
  package init(_ claims: [Claim: ClaimValue]) {
    self.claims = claims.filter { claim, _ in Self.members.contains { $0.claim == claim } }
  }

  /// The time of issue, in Unix seconds.
  package var issued: UInt64 { number(.issuedAt) ?? 0 }
  /// The time at which the token expires, in Unix seconds.
  package var expires: UInt64 { number(.expires) ?? 0 }

  /// The version of the app. A token without a version has version 0.0.0.
  package var version: AppVersion {
    if case .version(let version)? = claims[.version] { version } else { .zero }
  }

  /// Returns the value of a claim that is a number; nil if the token does not have it.
  package func number(_ claim: Claim) -> UInt64? {
    if case .number(let number)? = claims[claim] { number } else { nil }
  }

  /// The commands that the token allows; nil for all that the device's policy allows.
  package var commands: [String]? {
    if case .texts(let names)? = claims[.commands] { names } else { nil }
  }

  /// Returns the value of a claim that is a text; nil if the token does not have it.
  package func text(_ claim: Claim) -> String? {
    if case .text(let text)? = claims[claim] { text } else { nil }
  }
}

extension IssuanceReport {
  /// The report for a person, as titles and values. It stands here because it tells the same claims as the members.
  package var lines: [(title: String, value: String)] {
    let commands = commands.map { $0.isEmpty ? "none" : $0.joined(separator: ", ") }
    let uses = number(.maximumUses).map { "at most \($0) accepted round\($0 == 1 ? "" : "s")" }
    return [
      ("issuer", text(.issuer) ?? ""), ("subject", "\(text(.subject) ?? ""), version \(version.text)"),
      ("issued", "\(Timestamp(unixSeconds: issued))"), ("expires", "\(Timestamp(unixSeconds: expires))"),
      ("commands", commands ?? "all that the device's policy allows"), ("user", text(.user) ?? "any"),
      ("uses", uses ?? "any number"),
    ]
  }

  /// The report as an object that has all members in a fixed order. A token without a version has version 0.0.0.
  package var json: JSONValue {
    .object(
      Self.members.map { name, claim in
        (name, (claim == .version ? .version(version) : claims[claim])?.json ?? .null)
      })
  }

  /// Reads the object of ``json``; nil for anything else and for values that no token can have. Reports of earlier versions have the
  /// member `token_id`, too, which is not kept.
  package init?(_ value: JSONValue) {
    guard value.hasOnly(Self.names + ["token_id"]) else { return nil }
    var claims: [Claim: ClaimValue] = [:]
    for (name, claim) in Self.members {
      guard let member = value[name] else { return nil }
      if member == .null, !claim.row.isRequired, claim != .version { continue }
      guard let known = ClaimValue(member, of: claim.row.kind) else { return nil }
      claims[claim] = known
    }
    self.claims = claims
    guard issued < expires else { return nil }
  }
}

extension ClaimValue {
  /// The value in a report: bytes are hexadecimal digits.
  fileprivate var json: JSONValue {
    switch self {
    case .text(let text): .string(text)
    case .number(let number): .integer(number)
    case .bytes(let bytes): .string(hexadecimal(bytes.span))
    case .texts(let texts): .array(texts.map { .string($0) })
    case .version(let version): .array([version.major, version.minor, version.patch].map { .integer($0) })
    }
  }

  /// Reads the value of a claim of this type; nil for anything that ``json`` does not write for a token.
  fileprivate init?(_ json: JSONValue, of kind: Claim.Kind) {
    switch (kind, json) {
    case (.text64, .string(let text)) where text.utf8.count <= 64: self = .text(text)
    case (.text32, .string(let text)) where (1...32).contains(text.utf8.count): self = .text(text)
    case (.number, .integer(let number)): self = .number(number)
    case (.deviceID, .string(let text)), (.bytes16, .string(let text)):
      guard let bytes: FixedBytes<16> = fixedBytes(hexadecimal: text) else { return nil }
      self = .bytes((0..<16).map { bytes[$0] })
    case (.commands, .array(let elements)) where elements.count <= 16:
      let texts = elements.compactMap(\.text).filter { (1...32).contains($0.utf8.count) }
      guard texts.count == elements.count else { return nil }
      self = .texts(texts)
    case (.version, .array(let elements)):
      let numbers = elements.compactMap(\.number)
      guard numbers.count == 3, elements.count == 3 else { return nil }
      self = .version(AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2]))
    default: return nil
    }
  }
}
