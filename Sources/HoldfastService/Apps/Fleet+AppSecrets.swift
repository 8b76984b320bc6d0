import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

extension Fleet {
  /// The largest number of secure strings.
  private static let stringLimit: UInt64 = 256

  /// Sets a secure string, which attested apps get. The database has it encrypted, and no listing or log shows it.
  ///
  /// - Parameters:
  ///   - name: The name, 1 to 64 bytes without control characters.
  ///   - value: The value, 1 to 4096 bytes of UTF-8.
  /// - Throws: `conflict` beyond 256 strings.
  package func setString(
    _ name: BoundedText<64>, to value: [UInt8], by actor: Actor
  ) throws(AdministrationFault) {
    var random = SystemRandom()
    let id = Array(name.description.utf8)
    let sealed: [UInt8]
    do throws(CryptographyFailure) {
      sealed = try serviceKey.seal(value.span, as: .secureString, id: id.span, random: &random)
    } catch { throw .fleet(.cryptography) }
    try changing { (session) throws(AdministrationFault) in
      let count = try session.running { (session) throws(FleetFault) in
        // Changes of policy and strings run one after the other, so the count below is right.
        try session.raiseRevision()
        try session.run(
          """
          INSERT INTO strings (name, sealed, changed) VALUES ($1, $2, $3)
          ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed = excluded.changed
          """,
          .text(name.description), .bytes(sealed), .unsigned(session.now))
        try session.log("string.set", name.description, by: actor)
        return try session.number("SELECT count(*) FROM strings")
      }
      guard count <= Self.stringLimit else { throw .conflict(.tooMany) }
    }
  }

  /// Removes a secure string.
  package func removeString(_ name: BoundedText<64>, by actor: Actor) throws(AdministrationFault) {
    try change("string.remove", name.description, by: actor) { (session) throws(FleetFault) in
      try session.run("DELETE FROM strings WHERE name = $1", .text(name.description))
    }
  }

  /// Decrypts all secure strings, for an attested app.
  func secureStrings(in session: FleetSession) throws(FleetFault) -> JSONValue {
    var strings: [(String, JSONValue)] = []
    for row in try session.rows("SELECT name, sealed FROM strings ORDER BY name") {
      let (name, sealed) = try session.decoding { () throws(SQLFault) in (try row.text(0), try row.bytes(1)) }
      let id = Array(name.utf8)
      do throws(CryptographyFailure) {
        let opened = try serviceKey.open(sealed, as: .secureString, id: id.span)
        guard let text = String(validating: [UInt8](opened.bytes), as: UTF8.self) else {
          throw CryptographyFailure()
        }
        strings.append((name, .string(text)))
      } catch { throw .wrongServiceKey }
    }
    return .object(strings)
  }

  /// The number in the key for messages.
  package func messageEpoch() throws(FleetFault) -> UInt64 {
    try read { (session) throws(FleetFault) in try self.keys(in: session).apps.messageEpoch }
  }

  /// Replaces the key for messages: apps get another one with their next fetch.
  ///
  /// - Returns: The number in the new key.
  package func rotateMessageKey(by actor: Actor) throws(AdministrationFault) -> UInt64 {
    try changing { (session) throws(AdministrationFault) in
      try session.running { (session) throws(FleetFault) in
        try session.raiseRevision()
        let epoch = try session.raise(.messageEpoch)
        try session.log("message-key.rotate", "", by: actor, "epoch \(epoch)")
        return epoch
      }
    }
  }

  /// Returns the key for messages, 32 bytes in base64, for backends that check them. The log of changes says who has seen it.
  package func messageKey(by actor: Actor) throws(AdministrationFault) -> (epoch: UInt64, key: String) {
    try changing { (session) throws(AdministrationFault) in
      try session.running { (session) throws(FleetFault) in
        let keys = try self.keys(in: session)
        try session.log("message-key.secret", "", by: actor, "epoch \(keys.apps.messageEpoch)")
        let key = try keys.messageKey()
        let text = key.withBytes { paddedBase64($0) }
        return (keys.apps.messageEpoch, text)
      }
    }
  }

  /// Makes a development key, which replaces the one before.
  ///
  /// - Returns: The key, 26 characters of base32, which cannot be shown again.
  package func makeDevelopmentKey(by actor: Actor) throws(AdministrationFault) -> String {
    var random = SystemRandom()
    let text: String
    let sealed: [UInt8]
    do throws(CryptographyFailure) {
      let key: DevelopmentKey
      do throws(RandomFailure) { key = try DevelopmentKey(random: &random) } catch { throw CryptographyFailure() }
      text = key.text
      let id = DevelopmentKey.id
      sealed = try key.key.withBytes { (bytes) throws(CryptographyFailure) in
        try serviceKey.seal(bytes, as: .development, id: id.span, random: &random)
      }
    } catch { throw .fleet(.cryptography) }
    try set(developmentKey: sealed, "development-key.new", by: actor)
    return text
  }

  /// Removes the development key.
  ///
  /// - Throws: `notFound` if there is none.
  package func removeDevelopmentKey(by actor: Actor) throws(AdministrationFault) {
    guard try developmentKeyTime() != nil else { throw .notFound }
    try set(developmentKey: [], "development-key.remove", by: actor)
  }

  /// The time at which the development key was made, in Unix seconds; nil if there is none.
  package func developmentKeyTime() throws(AdministrationFault) -> UInt64? {
    try reading { (session) throws(AdministrationFault) in
      try session.running { (session) throws(FleetFault) in
        guard
          let row = try session.row(
            "SELECT value, revision FROM settings WHERE name = $1", .text(AppSetting.developmentKey.rawValue))
        else { return nil }
        return try session.decoding { () throws(SQLFault) in try row.bytes(0).isEmpty ? nil : row.unsigned(1) }
      }
    }
  }

  private func set(
    developmentKey sealed: [UInt8], _ action: StaticString, by actor: Actor
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      try session.running { (session) throws(FleetFault) in
        try session.raiseRevision()
        try session.set(.developmentKey, session.now, value: sealed)
        try session.log(action, "", by: actor)
      }
    }
  }
}
