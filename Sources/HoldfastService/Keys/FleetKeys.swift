import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import Synchronization

/// The keys and the policy of a service, read from the database at one revision. Any number of threads may use them at once.
final class FleetKeys: Sendable {
  /// A key that signs measurement tokens, or tokens for apps.
  struct Issuer: Sendable {
    let id: KeyID
    let key: MemorySigningKey
    /// The time from which the key signs, in Unix seconds.
    let active: UInt64
  }

  /// The revision of policy and keys.
  let revision: UInt64
  let policy: ServicePolicy
  /// The time at which the database was restored from a backup, in Unix seconds; nil if it never was.
  let restored: UInt64?
  /// The keys that sign, or will sign, in the order of ``Issuer/active``.
  let issuers: [Issuer]
  /// The key that signs the configuration for apps, which are built with its public half. It is the first one for their tokens.
  let configurationKey: MemorySigningKey
  /// The keys that sign tokens for apps, in the order of ``Issuer/active``.
  let appKeys: [Issuer]
  /// The settings of operators for apps.
  let apps: AttestedAppSettings
  /// The key for agreement with devices.
  let agreement: AgreementKeyPair
  private let signer: Mutex<AttestationSigner>
  private let opener: Mutex<AttestationOpener>

  init(
    revision: UInt64, policy: ServicePolicy, restored: UInt64?, issuers: [Issuer], configurationKey: MemorySigningKey,
    appKeys: [Issuer], agreement: AgreementKeyPair, apps: AttestedAppSettings,
    account: borrowing SecretBytes, encryption: borrowing SecretBytes
  ) throws(FleetFault) {
    (self.revision, self.policy, self.restored, self.issuers) = (revision, policy, restored, issuers)
    (self.configurationKey, self.appKeys, self.apps) = (configurationKey, appKeys, apps)
    self.agreement = agreement
    do throws(JOSEFault) {
      signer = Mutex(
        AttestationSigner(
          account: SecretBytes(copying: account.bytes), signing: .hs256(SecretBytes(copying: account.bytes)),
          encryption: try JWEKey(parsing: encryption.bytes)))
      opener = Mutex(
        AttestationOpener(
          encryption: try JWEKey(parsing: encryption.bytes), signing: .hs256(SecretBytes(copying: account.bytes))))
    } catch { throw .corrupt }
  }

  /// Uses the keys of the attestation service.
  func withSigner<Result, Failure: Error>(
    _ body: (inout AttestationSigner) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try signer.withLock { (signer) throws(Failure) in try body(&signer) }
  }

  /// Uses the backend's keys for attestation tokens.
  func withOpener<Result: ~Copyable, Failure: Error>(
    _ body: (inout AttestationOpener) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try opener.withLock { (opener) throws(Failure) in try body(&opener) }
  }

  /// Returns whether a baseline cannot be one that the service forgot when it was restored from a backup: a clock of a prover
  /// may be ahead by as much as fresh evidence may differ.
  func knows(baselineOf created: UInt64, firstSeen: UInt64?) -> Bool {
    guard let restored else { return true }
    return firstSeen.map { $0 > restored } ?? (created > restored + Evidence.freshnessSeconds)
  }

  /// Returns the key that signs measurement tokens at a time; nil before the first one is active.
  func issuer(at now: UInt64) -> Issuer? { issuers.last { $0.active <= now } }

  /// Returns the key that signs tokens for apps at a time.
  func appKey(at now: UInt64) throws(FleetFault) -> Issuer {
    guard let key = appKeys.last(where: { $0.active <= now }) ?? appKeys.first else { throw .corrupt }
    return key
  }
}

extension FleetSession {
  /// Reads the present revision of policy and keys.
  func revision() throws(FleetFault) -> UInt64 {
    guard let row = try row("SELECT revision FROM settings WHERE name = 'policy'") else { throw .corrupt }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) }
  }

  /// Opens the present keys.
  func keys(with serviceKey: borrowing ServiceKey) throws(FleetFault) -> FleetKeys {
    guard let row = try row("SELECT revision, value FROM settings WHERE name = 'policy'") else { throw .corrupt }
    let (revision, json) = try decoding { () throws(SQLFault) in (try row.unsigned(0), try row.bytes(1)) }
    let policy: ServicePolicy
    do throws(ServicePolicyFault) { policy = try ServicePolicy(json: json) } catch { throw .corrupt }
    var issuers: [FleetKeys.Issuer] = []
    var appKeys: [FleetKeys.Issuer] = []
    var configurationKey: MemorySigningKey?
    var others: [KeyPurpose: (id: [UInt8], sealed: [UInt8])] = [:]
    for row in try rows("SELECT id, purpose, sealed, active FROM keys WHERE retired IS NULL ORDER BY active, added") {
      let (id, name, sealed, active) = try decoding { () throws(SQLFault) in
        (try row.bytes(0), try row.text(1), try row.bytes(2), try row.unsigned(3))
      }
      guard let purpose = KeyPurpose(rawValue: name) else { throw .corrupt }
      guard purpose == .issuer || purpose == .appTokens else {
        others[purpose] = (id, sealed)
        continue
      }
      let key = try Self.signingKey((id, sealed), as: purpose, with: serviceKey)
      if id == Fleet.firstAppKeyID { configurationKey = key }
      var cryptography = OpenSSLCryptography()
      let publicID: KeyID
      do throws(CryptographyFailure) { publicID = try keyID(of: key.publicPoint, using: &cryptography) } catch {
        throw .cryptography
      }
      let opened = FleetKeys.Issuer(id: publicID, key: key, active: active)
      if purpose == .issuer { issuers.append(opened) } else { appKeys.append(opened) }
    }
    guard let account = others[.account], let encryption = others[.attestationEncryption] else { throw .corrupt }
    guard let configurationKey, let agreement = others[.agreement] else { throw .corrupt }
    var restored: UInt64?
    if let row = try self.row("SELECT revision FROM settings WHERE name = 'restored'") {
      restored = try decoding { () throws(SQLFault) in try row.unsigned(0) }
    }
    return try FleetKeys(
      revision: revision, policy: policy, restored: restored, issuers: issuers,
      configurationKey: configurationKey, appKeys: appKeys,
      agreement: try AgreementKeyPair(Self.opened(agreement, as: .agreement, with: serviceKey)),
      apps: try appSettings(),
      account: try Self.opened(account, as: .account, with: serviceKey),
      encryption: try Self.opened(encryption, as: .attestationEncryption, with: serviceKey))
  }

  private static func signingKey(
    _ key: (id: [UInt8], sealed: [UInt8]), as purpose: KeyPurpose, with serviceKey: borrowing ServiceKey
  ) throws(FleetFault) -> MemorySigningKey {
    let opened = try opened(key, as: purpose, with: serviceKey)
    guard let scalar = Secret<32>(copying: opened.bytes) else { throw .wrongServiceKey }
    do throws(CryptographyFailure) { return try MemorySigningKey(scalar: scalar) } catch { throw .wrongServiceKey }
  }

  private static func opened(
    _ key: (id: [UInt8], sealed: [UInt8]), as purpose: KeyPurpose, with serviceKey: borrowing ServiceKey
  ) throws(FleetFault) -> SecretBytes {
    do throws(CryptographyFailure) { return try serviceKey.open(key.sealed, as: purpose, id: key.id.span) } catch {
      throw .wrongServiceKey
    }
  }

  /// Looks up the keys of a release, which ``ServiceKey/releaseKeys(_:_:)`` opens.
  func sealedReleaseKeys(_ id: KeyID) throws(FleetFault) -> LookUp<[UInt8]> {
    try lookUp("SELECT sealed FROM releases WHERE id = $1", .copying(id.bytes)) { (row) throws(FleetFault) in
      try decoding { () throws(SQLFault) in try row.bytes(0) }
    }
  }
}

extension ServiceKey {
  /// Opens the keys of a release.
  borrowing func releaseKeys(_ id: KeyID, _ sealed: [UInt8]) throws(FleetFault) -> ReleaseKeys {
    do throws(CryptographyFailure) {
      let opened = try open(sealed, as: .release, id: id.bytes)
      guard opened.count == 48, let proof = MeasurementProofKey(copying: opened.bytes.extracting(first: 16)),
        let evidence = EvidenceKey(copying: opened.bytes.extracting(last: 32))
      else { throw CryptographyFailure() }
      return try ReleaseKeys(proof: proof, evidence: evidence)
    } catch { throw .wrongServiceKey }
  }
}
