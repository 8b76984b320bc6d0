import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux

/// The folder with the keys and records of the simulated attestation service and backend. Its mode is 0700.
package struct ServiceFolder: Sendable {
  /// The path of the folder.
  package let path: String

  /// Refers to an existing folder without reading it.
  package init(path: String) {
    self.path = path
  }

  /// Returns the path of a file in the folder.
  package func path(of file: ServiceFile) -> String { "\(path)/\(file.rawValue)" }

  /// Checks that the folder is a service folder and complete.
  ///
  /// - Throws: `file` with `anotherKind`, or `halfMade`.
  package func checkIsWhole() throws(ServiceFolderFault) {
    let isHalfMade: Bool
    do throws(FileError) {
      try FolderKind.service.require(ofFolder: path)
      isHalfMade = try IncompleteFolder.isHalfMade(path)
    } catch { throw .file(error) }
    if isHalfMade { throw .halfMade }
  }

  /// Reads the current policy.
  package func policy() throws(ServiceFolderFault) -> ServicePolicy {
    try checkIsWhole()
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: path(of: .policy), limit: ServicePolicy.maximumByteCount, requirements: .secret)
    } catch { throw .file(error) }
    do throws(ServicePolicyFault) { return try ServicePolicy(json: bytes) } catch { throw .policy(error) }
  }

  /// Replaces the policy.
  package func write(_ policy: ServicePolicy) throws(ServiceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json.pretty(), at: path(of: .policy), overwrite: true)
    } catch { throw .file(error) }
  }

  /// Opens the attestation service with its keys and its record.
  package func attestationService() throws(ServiceFolderFault) -> AttestationService<SeenConfigurationsDatabase> {
    try checkIsWhole()
    try checkKeysDiffer()
    let seen: SeenConfigurationsDatabase
    do throws(ServiceLedgerFault) {
      seen = try SeenConfigurationsDatabase(path: path(of: .attestationLedger), creating: false)
    } catch { throw .ledger(error) }
    return AttestationService(
      account: try secret(.account), signing: try attestationKey(), encryption: try encryptionKey(),
      releases: try releases(), policy: try policy(), seen: seen)
  }

  /// Opens the backend with its keys and its record.
  package func backend() throws(ServiceFolderFault) -> Backend<IssuedBaselinesDatabase> {
    try checkIsWhole()
    try checkKeysDiffer()
    let issued = try issuedBaselines()
    return Backend(
      encryption: try encryptionKey(), signing: try verifyingKey(), issuer: try issuerSecrets(),
      policy: try policy(), issued: issued)
  }

  /// Returns the public key that devices must trust, as `service show` prints it.
  package func issuerKey() throws(ServiceFolderFault) -> PublicKeyJWK {
    try checkIsWhole()
    return PublicKeyJWK(point: try signingKey(.issuer).publicPoint)
  }

  /// Returns the ids of the registered measurement proof keys.
  package func proofKeyIDs() throws(ServiceFolderFault) -> [KeyID] {
    try releases().ids
  }

  /// Returns the keys with which the issuer authenticates measurement tokens, for signing bulletins, and for an adversary who has stolen
  /// them.
  package func trustedIssuer() throws(ServiceFolderFault) -> IssuerSecrets<P256PrivateKey> {
    try checkIsWhole()
    return try issuerSecrets()
  }

  /// Opens the backend's durable record, which includes the owner's registry of devices.
  package func issuedBaselines() throws(ServiceFolderFault) -> IssuedBaselinesDatabase {
    try checkIsWhole()
    do throws(ServiceLedgerFault) {
      return try IssuedBaselinesDatabase(path: path(of: .issuerLedger), creating: false)
    } catch { throw .ledger(error) }
  }
}

extension ServiceFolder {
  private static let maximumKeyFileByteCount = 16384

  /// Reads a key file, to which only this user may have access.
  func secret(_ file: ServiceFile) throws(ServiceFolderFault) -> SecretBytes {
    let bytes: SecretBytes
    do throws(FileError) {
      bytes = try Files.readSecretFile(at: path(of: file), limit: Self.maximumKeyFileByteCount) {
        SecretBytes(copying: $0)
      }
    } catch { throw .file(error) }
    if file == .account, bytes.count < 32 { throw .key(.account) }
    return bytes
  }

  /// Reads a P-256 key from a file that holds its scalar.
  func signingKey(_ file: ServiceFile) throws(ServiceFolderFault) -> P256PrivateKey {
    let bytes = try secret(file)
    guard let scalar = Secret<32>(copying: bytes.bytes) else { throw .key(file) }
    do throws(CryptographyFailure) { return try P256PrivateKey(scalar: scalar) } catch { throw .key(file) }
  }

  /// Returns whether attestation tokens are signed with ES256, which the presence of the key file determines.
  private func hasAttestationKey() throws(ServiceFolderFault) -> Bool { try has(.attestation) }

  /// Returns whether an optional key file exists.
  func has(_ file: ServiceFile) throws(ServiceFolderFault) -> Bool {
    do throws(ServiceFolderFault) {
      _ = try secret(file)
      return true
    } catch {
      if case .file(let fault) = error, fault.kind == .notFound { return false }
      throw error
    }
  }

  /// Returns the key that signs attestation tokens.
  func attestationKey() throws(ServiceFolderFault) -> JWSKey {
    guard try hasAttestationKey() else { return .hs256(try secret(.account)) }
    return .es256(try signingKey(.attestation))
  }

  /// Returns the key that verifies attestation tokens: the public half of an ES256 key, otherwise the account secret.
  func verifyingKey() throws(ServiceFolderFault) -> JWSKey {
    guard try hasAttestationKey() else { return .hs256(try secret(.account)) }
    return .es256Public(try signingKey(.attestation).publicPoint)
  }

  /// Returns the keys with which the issuer authenticates measurement tokens.
  func issuerSecrets() throws(ServiceFolderFault) -> IssuerSecrets<P256PrivateKey> {
    IssuerSecrets(signing: try signingKey(.issuer), macSecret: try has(.mac) ? try macSecret() : nil)
  }

  func macSecret() throws(ServiceFolderFault) -> Secret<32> {
    let bytes = try secret(.mac)
    guard let secret = Secret<32>(copying: bytes.bytes) else { throw .key(.mac) }
    return secret
  }

  /// Returns the backend's key for attestation tokens.
  func encryptionKey() throws(ServiceFolderFault) -> JWEKey {
    let json = try secret(.attestationEncryption)
    do throws(JOSEFault) { return try JWEKey(parsing: json.bytes) } catch { throw .key(.attestationEncryption) }
  }

  func releases() throws(ServiceFolderFault) -> ReleaseKeyRegistry {
    var cryptography = OpenSSLCryptography()
    let keys = try secret(.releaseKeys)
    do throws(CryptographyFailure) {
      guard let registry = try ReleaseKeyRegistry(keys, using: &cryptography) else { throw CryptographyFailure() }
      return registry
    } catch { throw .key(.releaseKeys) }
  }

  /// Checks that no other file holds one of the issuer's keys, which authenticate only measurement tokens.
  ///
  /// - Throws: `sharedKey` if a file does.
  func checkKeysDiffer() throws(ServiceFolderFault) {
    let issuer = try signingKey(.issuer).publicPoint
    let issuerScalar = try secret(.issuer)
    let account = try secret(.account)
    guard !constantTimeEqual(account.bytes, issuerScalar.bytes) else { throw .sharedKey }
    if try has(.mac) {
      let mac = try secret(.mac)
      guard !constantTimeEqual(mac.bytes, issuerScalar.bytes), !constantTimeEqual(mac.bytes, account.bytes) else {
        throw .sharedKey
      }
    }
    if try hasAttestationKey() {
      guard try signingKey(.attestation).publicPoint != issuer else { throw .sharedKey }
    }
    if try has(.agreement) {
      guard try signingKey(.agreement).publicPoint != issuer else { throw .sharedKey }
    }
    let encryption = try encryptionKey()
    guard !encryption.hasPublicPoint(issuer.bytes) else { throw .sharedKey }
  }
}

extension JWEKey {
  /// Returns whether this is the elliptic-curve key with a SEC1 uncompressed point.
  fileprivate func hasPublicPoint(_ point: Span<UInt8>) -> Bool {
    switch material {
    case .elliptic(let key): key.publicPoint.span.elementsEqual(point)
    default: false
    }
  }
}

/// The reasons why a service folder cannot be created or used.
package enum ServiceFolderFault: Error, Equatable {
  /// A file is missing, is accessible to other users, or cannot be read or written.
  case file(FileError)
  /// The creation of the folder was interrupted and must be repeated.
  case halfMade
  /// A key file does not hold the key that its name states.
  case key(ServiceFile)
  /// `policy.json` is not a policy.
  case policy(ServicePolicyFault)
  /// One key serves two purposes.
  case sharedKey
  /// A durable record cannot be opened.
  case ledger(ServiceLedgerFault)
  /// libcrypto or the random source failed.
  case cryptography
}

/// The files of a service folder, all with mode 0600.
package enum ServiceFile: String, Sendable, CaseIterable {
  /// The account secret, 32 bytes.
  case account = "account.key"
  /// The ES256 attestation key, a scalar of 32 bytes. If it is absent, the account secret signs attestation tokens.
  case attestation = "attestation.key"
  /// The backend's key for attestation tokens: a private JWK with `alg` and `enc`.
  case attestationEncryption = "attestation-encryption.jwk"
  /// The issuer's signing key, a scalar of 32 bytes.
  case issuer = "issuer.key"
  /// The key for agreement with devices, a scalar of 32 bytes, for the pages of their audit logs. Folders of earlier versions have none.
  case agreement = "agreement.key"
  /// The secret from which the keys shared with devices are derived, 32 bytes; absent until the first such key is made.
  case mac = "mac.key"
  /// The keys of the releases, 48 bytes each: measurement proof key and evidence key.
  case releaseKeys = "release.keys"
  /// The owner's rules.
  case policy = "policy.json"
  /// The durable record of the attestation service.
  case attestationLedger = "attestation.sqlite"
  /// The durable record of the backend.
  case issuerLedger = "issuer.sqlite"
}
