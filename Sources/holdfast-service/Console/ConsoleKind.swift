#if Service
import HoldfastFormats
import HoldfastService

/// The names for people and the columns of the list that the console adds to the table of operations for one kind of records.
struct ConsoleKind: Sendable {
  /// The first part of the path, as in `/v1/admin/devices`.
  let path: String
  /// The name in the menu and above lists.
  let title: String
  /// The name of one record.
  let singular: String
  /// The members that the list shows, in this order.
  let columns: [String]
  /// Lists that belong to a record: a title, the kind, and the filter that takes the record's key.
  let related: [(title: String, path: String, filter: String)]
  /// The members that may name a record that does not exist: what a prover claimed, and what a device's log says.
  let unlinked: [String]
  /// The filter with which the menu opens the list.
  let query: String

  private init(
    _ path: String, _ title: String, _ singular: String, _ columns: [String],
    related: [(title: String, path: String, filter: String)] = [], unlinked: [String] = [], query: String = ""
  ) {
    (self.path, self.title, self.singular, self.columns) = (path, title, singular, columns)
    (self.related, self.unlinked, self.query) = (related, unlinked, query)
  }

  /// The kinds, in the order of the menu.
  static let all: [ConsoleKind] = [
    ConsoleKind(
      "requests", "Requests", "Request",
      ["id", "state", "created", "device", "subject", "version", "user", "properties"],
      unlinked: ["user"], query: "?status=waiting"),
    ConsoleKind(
      "invitations", "Invitations", "Invitation", ["id", "state", "device", "user", "creator", "created", "expires"]),
    ConsoleKind(
      "devices", "Devices", "Device", ["id", "state", "label", "groups", "added", "generation"],
      related: [
        ("Tokens for this device", "tokens", "device"), ("Timeline", "timeline", "device"),
        ("Audit log", "audits", "device"),
        ("Bulletins for this device", "bulletins", "device"), ("Minimum versions", "minimum-versions", "device"),
        ("Keys for this device", "key-orders", "device"), ("Users to lock or remove", "user-orders", "device"),
        ("Raise a minimum version", "minimum-versions/new", "device"),
        ("Invite to this device", "invitations/new", "device"),
      ]),
    ConsoleKind(
      "tokens", "Tokens", "Token", ["id", "state", "device", "user", "subject", "version", "issued", "expires"],
      related: [("Bulletins that revoke it", "bulletins", "token"), ("Who knows that", "reach", "token")]),
    ConsoleKind(
      "provers", "Provers", "Prover", ["id", "state", "first_seen", "last_seen", "reason"],
      related: [
        ("Tokens of this prover", "tokens", "prover"), ("Bulletins that revoke it", "bulletins", "prover"),
        ("Who knows that", "reach", "prover"),
      ]),
    ConsoleKind(
      "users", "Users", "User", ["name", "state", "added", "reason"],
      related: [("Tokens of this user", "tokens", "user"), ("Audit log entries", "audits", "user")]),
    ConsoleKind(
      "refusals", "Refusals", "Refusal", ["time", "step", "reasons", "code", "device", "prover", "image"],
      unlinked: ["prover", "image"]),
    ConsoleKind(
      "audits", "Audit logs", "Audit log entry", ["time", "device", "sequence", "event", "user", "details"],
      unlinked: ["user"]),
    ConsoleKind(
      "audit-logs", "Audit pages", "Audit log",
      ["device", "entries", "complete_through", "missing", "acknowledged", "forked", "pages_refused", "last_page"]),
    ConsoleKind(
      "bulletins", "Bulletins", "Bulletin",
      [
        "number", "for", "issued", "revocations", "generation", "minimum_versions", "introduced_keys", "ended_keys",
        "users", "predecessor", "signer",
      ]),
    ConsoleKind(
      "minimum-versions", "Minimum versions", "Minimum version", ["for", "app", "version", "raised", "bulletin"]),
    ConsoleKind(
      "key-orders", "Keys for devices", "Key for devices",
      ["for", "key", "introducer", "from", "until", "introduced", "ended", "bulletin"]),
    ConsoleKind(
      "user-orders", "Users to lock or remove", "User to lock or remove",
      ["device", "user", "action", "until", "ordered", "bulletin"], unlinked: ["user"]),
    ConsoleKind("deliveries", "Who knows what", "Delivery", ["device", "newest", "taken", "heard"]),
    ConsoleKind(
      "reach", "Revocations on their way", "Revocation",
      ["token", "device", "prover", "revoked", "bulletin", "known"]),
    ConsoleKind("timeline", "Timeline of a device", "Event", ["time", "event", "details"]),
    ConsoleKind("changes", "Changes", "Change", ["time", "actor", "action", "object", "detail"]),
    ConsoleKind("statistics", "Statistics", "Statistics", []),
    ConsoleKind("images", "Images", "Image", ["digest", "state", "subject", "version", "proof_key", "added"]),
    ConsoleKind("keys", "Issuer keys", "Issuer key", ["id", "state", "added", "active"]),
    ConsoleKind("operators", "Operators", "Operator", ["name", "state", "scopes", "added", "expires"]),
    ConsoleKind("policy", "Policy", "Policy", []),
    ConsoleKind(
      "domains", "Domains", "Domain",
      ["name", "audience", "algorithm", "lifetime", "protected", "measurement", "added"]),
    ConsoleKind("pins", "Pins", "Pin", ["id", "added"]),
    ConsoleKind("strings", "Secure strings", "Secure string", ["name", "changed"]),
    ConsoleKind("app-keys", "Keys of app tokens", "Key of app tokens", ["id", "active", "configuration"]),
    ConsoleKind("posture-rules", "Posture rules", "Posture rules", []),
    ConsoleKind("message-key", "Key for messages", "Key for messages", []),
    ConsoleKind("development-key", "Development key", "Development key", []),
    ConsoleKind(
      "codes", "Response codes", "Response code",
      ["code", "prover", "properties", "first_seen", "app_properties", "system_id", "system_version", "user_property"],
      related: [("Refusals with this code", "refusals", "code")], unlinked: ["prover"]),
  ]

  /// The kind of an operation's records.
  init?(of operation: AdministrationOperation) {
    guard let kind = Self.all.first(where: { $0.path == operation.kind }) else { return nil }
    self = kind
  }
}

/// The state of a record, in a word: what made it end, or whether it counts.
struct RecordState: Sendable {
  let word: String
  /// Whether it counts, waits, or has ended; the style of the word.
  let style: String

  private init(_ word: String, _ style: String) { (self.word, self.style) = (word, style) }

  /// Reads the state from the times that a record has; nil for records without a state.
  ///
  /// - Parameter now: Unix seconds.
  init?(_ record: JSONValue, at now: UInt64) {
    if let status = record["status"]?.text {
      let isOld = (record["created"]?.number ?? now) + 86_400 <= now
      self = status == "waiting" && isOld ? Self("expired", "over") : Self(status, Self.styles[status] ?? "over")
      return
    }
    for (member, word) in [
      ("revoked", "revoked"), ("blocked", "blocked"), ("withdrawn", "withdrawn"), ("retired", "retired"),
    ] where record[member]?.number != nil {
      self = Self(word, "bad")
      return
    }
    if record["used"]?.number != nil {
      self = Self("used", "over")
    } else if let end = record["expires"]?.number, end <= now {
      self = Self("expired", "over")
    } else if let start = record["active"]?.number, start > now {
      self = Self("upcoming", "wait")
    } else if ["revoked", "blocked", "withdrawn", "retired"].contains(where: { record[$0] != nil }) {
      self = Self(record["used"] == nil ? "active" : "open", "good")
    } else {
      return nil
    }
  }

  private static let styles = ["waiting": "wait", "approved": "good", "refused": "bad", "collected": "over"]

  /// The states in which an operation has an effect; nil for all. The operation itself checks again.
  static func states(of operation: AdministrationOperation) -> [String]? {
    switch operation.name {
    case "approveRequest", "refuseRequest": ["waiting"]
    case "revokeInvitation": ["open"]
    case "blockDevice", "revokeProver", "revokeUser", "withdrawImage": ["active"]
    case "revokeToken", "removeOperator": ["active", "expired"]
    case "unblockDevice": ["blocked"]
    case "reinstateProver", "reinstateUser": ["revoked"]
    default: nil
    }
  }
}

extension AdministrationOperation {
  private static let root = "/v1/admin"

  /// The parts of the path behind `/v1/admin`.
  private var parts: [Substring] { path.dropFirst(Self.root.count).split(separator: "/") }

  /// The first part of the path: the kind of records.
  var kind: String { parts.first.map(String.init) ?? "" }

  /// Whether the path names a record.
  var hasKey: Bool { path.contains("{id}") }

  /// The path of the operation's page: the same behind `/console`, where a new record and a new policy have a form.
  var consolePath: String {
    let path = ConsoleRoutes.root + path.dropFirst(Self.root.count)
    switch method {
    case .get: return path
    case .post: return hasKey ? path : path + "/new"
    case .put: return path + "/edit"
    }
  }

  /// Returns the address of the page for a record.
  func address(_ key: String) -> String { consolePath.replacing("{id}", with: FormData.encoded(key)) }

  /// The name for people, such as "Revoke device".
  var title: String { name.words }

  /// Whether a mistake would do harm: the page asks for a reason in red.
  var isDestructive: Bool {
    ["revoke", "refuse", "block", "withdraw", "remove", "raise", "lock", "end"].contains { name.hasPrefix($0) }
  }

  /// The operation that shows one record of a kind.
  static func show(_ kind: String) -> AdministrationOperation? {
    all.first { $0.method == .get && $0.kind == kind && $0.hasKey }
  }

  /// The operation that lists the records of a kind.
  static func list(_ kind: String) -> AdministrationOperation? {
    all.first { $0.method == .get && $0.kind == kind && !$0.hasKey }
  }
}

extension String {
  /// The name in words with a capital at the beginning: `first_seen` and `firstSeen` are "First seen".
  var words: String {
    var words = ""
    for scalar in unicodeScalars {
      if scalar == "_" {
        words += " "
      } else if scalar.properties.isUppercase, !words.isEmpty {
        words += " " + scalar.properties.lowercaseMapping
      } else {
        words += words.isEmpty ? scalar.properties.uppercaseMapping : String(scalar)
      }
    }
    return words
  }
}
#endif
