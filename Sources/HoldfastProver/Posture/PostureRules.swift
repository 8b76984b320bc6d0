import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastOpenSSL

/// The consequence of a finding.
public enum PostureAction: String, Sendable, Comparable, CaseIterable {
  /// The finding has no consequence.
  case ignore
  /// The prover says so, and goes on.
  case warn
  /// The prover neither enrols nor proves.
  case refuse
  /// The same, and before that the prover removes all enrolments of its state folder. A finding about which nothing is known never
  /// wipes: it then refuses.
  case wipe

  /// Whether `left` is the milder consequence.
  public static func < (left: PostureAction, right: PostureAction) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .ignore: 0
    case .warn: 1
    case .refuse: 2
    case .wipe: 3
    }
  }
}

/// The reasons why rules are refused.
public enum PostureRulesFault: Error, Equatable, Sendable {
  /// The text is not a signed document of the right type.
  case malformed
  /// The document is signed, but its content is not as documented.
  case content
  /// Another key than the expected one signed it.
  case anotherKey
  /// The signature is wrong, or the cryptographic library failed.
  case notAuthentic
  /// The number is not above that of the installed rules, and these are not the same rules.
  case notNewer(installed: UInt64)
  /// The first rules need the issuer's key.
  case issuerNeeded
}

/// The consequence of each finding, in a document that an issuer numbered and signed.
///
/// The text is a compact JWS (ES256, `typ` `holdfast-posture-rules+jwt`), at most 3072 bytes. Its claims are `num` (1 to 2^53 - 1),
/// `iat`, `default`, `unknown`, `rules` and, optionally, `until`; there are no others.
public struct PostureRules: Sendable, Equatable {
  /// The number. A later document has a higher one.
  public let number: UInt64
  /// The time at which the issuer signed, in Unix seconds.
  public let issued: UInt64
  /// The time from which on the issuer expects newer rules to be installed, in Unix seconds; nil if it does not say.
  public let until: UInt64?
  /// The consequence of each finding that the document names. A name may be unknown to this program.
  let actions: [String: PostureAction]
  /// The consequence of the findings that the document does not name.
  let others: PostureAction
  /// The most that follows from a finding about which nothing is known.
  let unknown: PostureAction
  /// The text of the document.
  let text: [UInt8]

  /// The value of `typ`.
  package static let type = "holdfast-posture-rules+jwt"
  /// The largest document, in bytes.
  package static let maximumByteCount = 3072
  private static let maximumRuleCount = 64

  /// Reads rules and checks their signature.
  ///
  /// - Parameters:
  ///   - text: the compact JWS; line ends after it are ignored.
  ///   - issuer: the key of the issuer, which alone counts.
  package init(_ text: [UInt8], by issuer: P256Point) throws(PostureRulesFault) {
    var text = text
    while let last = text.last, last == 0x0a || last == 0x0d { text.removeLast() }
    guard text.count <= Self.maximumByteCount else { throw .malformed }
    let claims: JSONValue
    do throws(SignedJSON.Fault) { claims = try SignedJSON.verify(text, type: Self.type, by: issuer) } catch {
      switch error {
      case .malformed, .unexpected: throw .malformed
      case .anotherKey: throw .anotherKey
      case .notAuthentic: throw .notAuthentic
      }
    }
    do throws(JSONMistake) { try self.init(JSONMember(claims), text: text) } catch { throw .content }
  }

  private init(_ claims: JSONMember, text: [UInt8]) throws(JSONMistake) {
    try claims.checkMembers(["num", "iat", "until", "default", "unknown", "rules"])
    number = try claims.required("num").integer(1...maximumInteger)
    issued = try claims.required("iat").integer()
    until = try claims.member("until")?.integer()
    others = try claims.required("default").action()
    unknown = try claims.required("unknown").action()
    var actions: [String: PostureAction] = [:]
    for (name, member) in try claims.required("rules").members(atMost: Self.maximumRuleCount) {
      guard Self.isName(name) else { throw member.mistake(.form("the name of a finding")) }
      actions[name] = try member.action()
    }
    self.actions = actions
    self.text = text
  }

  private static func isName(_ text: String) -> Bool {
    (1...32).contains(text.utf8.count) && text.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d }
  }

  /// Checks the claims of rules before they are signed.
  ///
  /// - Parameter json: the claims without `iat`, as an owner writes them: `number` is the claim `num`.
  /// - Returns: the claims to sign.
  package static func claims(of json: JSONMember, issued: UInt64) throws(JSONMistake) -> JSONValue {
    try json.checkMembers(["number", "until", "default", "unknown", "rules"])
    let number = try json.required("number").integer(1...maximumInteger)
    var claims: [(String, JSONValue)] = [("num", .integer(number)), ("iat", .integer(issued))]
    if let until = json.member("until") { claims.append(("until", until.value)) }
    for name in ["default", "unknown", "rules"] { claims.append((name, try json.required(name).value)) }
    for (name, member) in try json.required("rules").members(atMost: maximumRuleCount) {
      guard PostureFinding(rawValue: name) != nil else {
        throw member.mistake(.knownMember(PostureFinding.allCases.map(\.rawValue)))
      }
      _ = try member.action()
    }
    _ = try json.member("until")?.integer()
    _ = try PostureRules(JSONMember(.object(claims)), text: [])
    return .object(claims)
  }
}

extension JSONMember {
  fileprivate func action() throws(JSONMistake) -> PostureAction {
    guard let action = value.text.flatMap(PostureAction.init) else {
      throw mistake(.text(of: PostureAction.allCases.map(\.rawValue)))
    }
    return action
  }
}

/// A posture, judged by rules.
public struct PostureVerdict: Sendable, Equatable {
  /// One finding and what follows from it.
  public struct Decision: Sendable, Equatable {
    /// The name of the finding, as in the rules.
    public let name: String
    /// Whether it was found.
    public let state: PostureState
    /// The consequence.
    public let action: PostureAction
  }

  /// The decisions, one for each finding of this program, then one for each other finding that the rules name.
  public let decisions: [Decision]

  /// The worst consequence.
  public var action: PostureAction { decisions.map(\.action).max() ?? .ignore }

  /// Returns the names of the findings with a consequence.
  public func names(_ action: PostureAction) -> [String] {
    decisions.filter { $0.action == action }.map(\.name)
  }
}

extension PostureRules {
  /// Judges a posture. A finding that the rules name and that this program cannot look for counts as unknown.
  public func judge(_ posture: Posture) -> PostureVerdict {
    var decisions = posture.observations.map { observation in
      decision(observation.finding.rawValue, observation.state)
    }
    for name in actions.keys.sorted() where PostureFinding(rawValue: name) == nil {
      decisions.append(decision(name, .unknown))
    }
    return PostureVerdict(decisions: decisions)
  }

  private func decision(_ name: String, _ state: PostureState) -> PostureVerdict.Decision {
    let full = actions[name] ?? others
    let action: PostureAction =
      switch state {
      case .clear: .ignore
      case .found: full
      case .unknown: min(full, unknown, .refuse)
      }
    return PostureVerdict.Decision(name: name, state: state, action: action)
  }
}
