import HoldfastCore

/// What a token must say, as a vector writes it.
struct ExpectedClaims {
  private let issuer: String
  private let subject: String
  private let audience: DeviceID
  private let expires: UInt64
  private let issuedAt: UInt64
  private let tokenID: TokenID
  private let integrity: FixedBytes<32>
  private let device: FixedBytes<32>
  private let proofKey: FixedBytes<16>
  private let generation: UInt64
  private let maximumUses: UInt64?
  private let commands: [String]?
  private let version: AppVersion
  private let user: String?

  init(_ node: VectorNode) throws(VectorFault) {
    guard let members = node.value.members else { throw node.fault(.wrongType) }
    for (name, _) in members where !Self.names.contains(name) {
      throw try node.member(name).fault(.wrongValue)
    }
    issuer = try node.member("issuer").text()
    subject = try node.member("subject").text()
    audience = try node.member("audience").fixed()
    expires = try node.member("expires").number()
    issuedAt = try node.member("issuedAt").number()
    tokenID = try node.member("tokenId").fixed()
    integrity = try node.member("integrity").fixed()
    device = try node.member("device").fixed()
    proofKey = try node.member("proofKey").fixed()
    generation = try node.member("generation").number()
    maximumUses = try node.optional("maximumUses")?.number()
    commands = try node.optional("commands").map { (list) throws(VectorFault) in
      try list.elements().map { (command) throws(VectorFault) in try command.text() }
    }
    version = try node.optional("version").map { (list) throws(VectorFault) in try Self.version(list) } ?? .zero
    user = try node.optional("user")?.text()
  }

  private static let names: Set = [
    "issuer", "subject", "audience", "expires", "issuedAt", "tokenId", "integrity", "device", "proofKey", "generation",
    "maximumUses", "commands", "version", "user",
  ]

  private static func version(_ node: VectorNode) throws(VectorFault) -> AppVersion {
    let numbers = try node.elements()
    guard numbers.count == 3 else { throw node.fault(.wrongValue) }
    return AppVersion(
      major: try numbers[0].number(), minor: try numbers[1].number(), patch: try numbers[2].number())
  }

  /// The name of the first claim that is another; nil when all are the same.
  func difference(from claims: borrowing MeasurementClaims) -> String? {
    if !same(claims.issuer, issuer) { return "issuer" }
    if !same(claims.subject, subject) { return "subject" }
    if claims.audience != audience { return "audience" }
    if claims.expires != expires { return "expires" }
    if claims.issuedAt != issuedAt { return "issuedAt" }
    if claims.tokenID != tokenID { return "tokenId" }
    if publicBytes(claims.integrity) != integrity { return "integrity" }
    if publicBytes(claims.device) != device { return "device" }
    if publicBytes(claims.proofKey) != proofKey { return "proofKey" }
    if claims.generation != generation { return "generation" }
    return optionalDifference(from: claims)
  }

  private func optionalDifference(from claims: borrowing MeasurementClaims) -> String? {
    if claims.maximumUses != maximumUses { return "maximumUses" }
    if claims.version != version { return "version" }
    switch (claims.user, user) {
    case (nil, nil): break
    case (let given?, let expected?): if !same(given, expected) { return "user" }
    default: return "user"
    }
    return isSame(claims.commands, commands) ? nil : "commands"
  }

  private func isSame(_ list: borrowing CommandList?, _ expected: [String]?) -> Bool {
    guard let expected else { return list == nil }
    switch list {
    case .some(let given):
      return given.count == expected.count && expected.indices.allSatisfy { same(given[$0], expected[$0]) }
    case .none: return false
    }
  }

  private func same<let capacity: Int>(_ text: BoundedText<capacity>, _ expected: String) -> Bool {
    array(text.bytes) == Array(expected.utf8)
  }
}
