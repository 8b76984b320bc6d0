import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

extension Fleet {
  /// Creates a service with fresh keys in a database that has none.
  ///
  /// - Parameters:
  ///   - location: An empty database, or one whose creation failed.
  ///   - serviceKey: The secret that encrypts the keys in the database.
  ///   - policy: The owner's rules, without images.
  ///   - actor: The person who creates it.
  /// - Throws: `alreadyCreated`; `database`, `cryptography`, `noClock`.
  package static func create(
    in location: DatabaseLocation, serviceKey: borrowing ServiceKey, policy: ServicePolicy, by actor: Actor,
    clock: any Clock & Sendable = SystemClock()
  ) throws(FleetFault) {
    guard let now = clock.unixSeconds() else { throw .noClock }
    let database = try open(location, connectionCount: 1, creating: true)
    let keys = try freshKeys(serviceKey)
    try transaction(in: database, at: now) { (session) throws(FleetFault) in
      guard
        try session.run(
          "INSERT INTO settings (name, value, revision) VALUES ('policy', $1, 1) ON CONFLICT DO NOTHING",
          .bytes(policy.json.compact())) == 1
      else { throw .alreadyCreated }
      for key in keys {
        try session.run(
          "INSERT INTO keys (id, purpose, sealed, added, active) VALUES ($1, $2, $3, $4, $5)", .bytes(key.id),
          .text(key.purpose.rawValue), .bytes(key.sealed), .unsigned(now), .unsigned(now))
      }
      try session.log("service.create", "", by: actor)
    }
  }

  /// A key as it is stored.
  struct SealedKey {
    let id: [UInt8]
    let purpose: KeyPurpose
    let sealed: [UInt8]
  }

  private static func freshKeys(_ serviceKey: borrowing ServiceKey) throws(FleetFault) -> [SealedKey] {
    var random = SystemRandom()
    do throws(CryptographyFailure) {
      let account: Secret<32>
      do throws(RandomFailure) { account = try random.secret() } catch { throw CryptographyFailure() }
      return [
        try account.withBytes { (account) throws(CryptographyFailure) in
          try sealed(account, as: .account, id: Array("account".utf8), serviceKey, &random)
        },
        try attestationKey(serviceKey, &random),
        try freshIssuerKey(serviceKey, &random), try freshAppTokenKey(serviceKey, &random),
        try freshAgreementKey(serviceKey, &random),
      ]
    } catch { throw .cryptography }
  }

  /// Makes another key for attestation tokens: those for the key before cannot be opened with it.
  static func freshAttestationKey(_ serviceKey: borrowing ServiceKey) throws(BackupFault) -> SealedKey {
    var random = SystemRandom()
    do throws(CryptographyFailure) { return try attestationKey(serviceKey, &random) } catch {
      throw .fleet(.cryptography)
    }
  }

  private static func attestationKey(
    _ serviceKey: borrowing ServiceKey, _ random: inout SystemRandom
  ) throws(CryptographyFailure) -> SealedKey {
    // In one expression, Swift 6.3 makes invalid code of it.
    let agreement = try JWEKey.generatedJWK()
    return try sealed(
      agreement.bytes, as: .attestationEncryption, id: Array("attestation".utf8), serviceKey, &random)
  }

  /// Makes a key that signs measurement tokens. Its id is that of the public key.
  static func freshIssuerKey(
    _ serviceKey: borrowing ServiceKey, _ random: inout SystemRandom
  ) throws(CryptographyFailure) -> SealedKey {
    var cryptography = OpenSSLCryptography()
    let key = try P256PrivateKey()
    var id: [UInt8] = []
    id.append(try keyID(of: key.publicPoint, using: &cryptography).bytes)
    return try key.scalar().withBytes { (scalar) throws(CryptographyFailure) in
      try sealed(scalar, as: .issuer, id: id, serviceKey, &random)
    }
  }

  /// The id of the first key for apps, which is fixed, so that there is only one.
  static let firstAppKeyID = Array(KeyPurpose.appTokens.rawValue.utf8)

  /// Makes a key that signs tokens for apps.
  ///
  /// - Parameter isFirst: Whether it is the one that signs the configuration for apps too.
  static func freshAppTokenKey(
    _ serviceKey: borrowing ServiceKey, _ random: inout SystemRandom, isFirst: Bool = true
  ) throws(CryptographyFailure) -> SealedKey {
    let key = try P256PrivateKey()
    var cryptography = OpenSSLCryptography()
    var id: [UInt8] = []
    id.append(try keyID(of: key.publicPoint, using: &cryptography).bytes)
    return try key.scalar().withBytes { [id] (scalar) throws(CryptographyFailure) in
      try sealed(scalar, as: .appTokens, id: isFirst ? firstAppKeyID : id, serviceKey, &random)
    }
  }

  /// Makes the key for agreement with devices. Its id is fixed, so that there is only one.
  private static func freshAgreementKey(
    _ serviceKey: borrowing ServiceKey, _ random: inout SystemRandom
  ) throws(CryptographyFailure) -> SealedKey {
    let key = try P256PrivateKey()
    return try key.scalar().withBytes { (scalar) throws(CryptographyFailure) in
      try sealed(scalar, as: .agreement, id: Array(KeyPurpose.agreement.rawValue.utf8), serviceKey, &random)
    }
  }

  /// Makes the key that signs tokens for apps and the key for agreement, if an earlier version created the service. Of several
  /// processes at once, the first one determines them.
  func makeMissingKeys() throws(FleetFault) {
    for purpose in [KeyPurpose.appTokens, .agreement] { try makeKeyIfMissing(purpose) }
  }

  private func makeKeyIfMissing(_ purpose: KeyPurpose) throws(FleetFault) {
    let isMissing = try read { (session) throws(FleetFault) in
      try session.row("SELECT id FROM keys WHERE id = $1", .bytes(Array(purpose.rawValue.utf8))) == nil
    }
    guard isMissing else { return }
    var random = SystemRandom()
    let key: SealedKey
    do throws(CryptographyFailure) {
      key =
        purpose == .agreement
        ? try Self.freshAgreementKey(serviceKey, &random) : try Self.freshAppTokenKey(serviceKey, &random)
    } catch { throw .cryptography }
    try transaction { (session) throws(FleetFault) in
      _ = try session.run(
        """
        INSERT INTO keys (id, purpose, sealed, added, active) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING
        """,
        .bytes(key.id), .text(key.purpose.rawValue), .bytes(key.sealed), .unsigned(session.now), .unsigned(session.now))
    }
  }

  private static func sealed(
    _ secret: Span<UInt8>, as purpose: KeyPurpose, id: [UInt8], _ serviceKey: borrowing ServiceKey,
    _ random: inout SystemRandom
  ) throws(CryptographyFailure) -> SealedKey {
    SealedKey(
      id: id, purpose: purpose, sealed: try serviceKey.seal(secret, as: purpose, id: id.span, random: &random))
  }
}
