import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastStorage

extension Fleet {
  /// Sets the settings of all tokens, or of some; or removes them. The rest of the policy stays.
  ///
  /// - Parameters:
  ///   - settings: The settings; nil to remove those of all tokens.
  ///   - scope: The tokens; nil for all. Its settings count only if they are not removed.
  ///   - isRemoving: Whether the settings of `scope` are removed.
  /// - Throws: `notFound` if there is nothing to remove; `conflict` beyond 32 settings.
  package func set(
    settings: AppSettings?, of scope: ScopedSettings?, removing isRemoving: Bool, by actor: Actor
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      var policy = try session.running { (session) throws(FleetFault) in try session.lockedPolicy() }
      if let scope {
        guard let changed = policy.set(scope, removing: isRemoving) else { throw .conflict(.tooMany) }
        guard changed || !isRemoving else { throw .notFound }
      } else {
        guard !isRemoving || policy.conditions.settings != nil else { throw .notFound }
        policy.conditions.settings = isRemoving ? nil : settings
      }
      let json = policy.json.compact()
      guard json.count <= ServicePolicy.maximumByteCount else { throw .conflict(.tooMany) }
      try session.running { (session) throws(FleetFault) in
        try session.raiseRevision(policy: json)
        try session.log(isRemoving ? "settings.remove" : "settings.set", scope?.text ?? "all", by: actor)
      }
    }
  }

  /// Signs rules about the posture of provers, which every prover may fetch.
  ///
  /// Provers follow one key. The key that signed the present rules therefore signs all later ones, also after another key began to
  /// sign tokens; the issuer's present key signs the first rules.
  ///
  /// - Parameter claims: The claims without `num` and `iat`.
  /// - Throws: `conflict` for a number that is not above the present one, and for rules that no prover would read.
  package func setPostureRules(
    number: UInt64, _ claims: [(String, JSONValue)], by actor: Actor
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      let keys = try session.running { (session) throws(FleetFault) in
        _ = try session.lockedPolicy()
        return try self.keys(in: session)
      }
      let present = try session.running { (session) throws(FleetFault) in try session.postureRules() }
      guard number > present?.number ?? 0 else { throw .conflict(.notNewer) }
      let text = try session.running { (session) throws(FleetFault) in
        let signer = present.flatMap { present in keys.issuers.first { $0.signed(rules: present.text) } }
        guard let issuer = signer ?? keys.issuer(at: session.now) else { throw .corrupt }
        return try CompactToken.signed(
          .object([("num", .integer(number)), ("iat", .integer(session.now))] + claims), as: .postureRules,
          by: issuer.key)
      }
      guard text.utf8.count <= Self.postureRulesLimit else { throw .conflict(.tooLong) }
      try session.running { (session) throws(FleetFault) in
        try session.set(.postureRules, number, value: Array(text.utf8))
        try session.log("posture-rules.set", String(number), by: actor)
      }
    }
  }

  /// The largest rules that a prover reads, in bytes.
  private static let postureRulesLimit = 3072

  /// The newest rules about the posture of provers, a compact JWS; nil if there are none.
  package func postureRules() throws(FleetFault) -> (number: UInt64, text: String)? {
    try read { (session) throws(FleetFault) in try session.postureRules() }
  }
}

extension FleetSession {
  /// Reads the policy, and lets others that would change it wait until the transaction ends.
  fileprivate func lockedPolicy() throws(FleetFault) -> ServicePolicy {
    guard let row = try row("SELECT value FROM settings WHERE name = 'policy' FOR UPDATE") else { throw .corrupt }
    let json = try decoding { () throws(SQLFault) in try row.bytes(0) }
    do throws(ServicePolicyFault) { return try ServicePolicy(json: json) } catch { throw .corrupt }
  }

  fileprivate func postureRules() throws(FleetFault) -> (number: UInt64, text: String)? {
    guard
      let row = try row(
        "SELECT revision, value FROM settings WHERE name = $1", .text(AppSetting.postureRules.rawValue))
    else { return nil }
    let (number, bytes) = try decoding { () throws(SQLFault) in (try row.unsigned(0), try row.bytes(1)) }
    return (number, String(decoding: bytes, as: UTF8.self))
  }
}

extension FleetKeys.Issuer {
  /// Whether this key signed these rules.
  fileprivate func signed(rules text: String) -> Bool {
    (try? SignedJSON.verify(Array(text.utf8), type: CompactTokenKind.postureRules.rawValue, by: key.publicPoint)) != nil
  }
}

extension ScopedSettings {
  /// The tokens, for the log of changes.
  fileprivate var text: String {
    let version = version.map { " \($0.text)" } ?? ""
    return [app.map { "app \($0)\(version)" }, device.map { "device \(hexadecimal($0))" }].compactMap { $0 }
      .joined(separator: ", ")
  }
}
