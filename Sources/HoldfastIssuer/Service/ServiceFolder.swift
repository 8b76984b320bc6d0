import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// The folder S in which the simulated attestation service and backend keep their keys and records; mode 0700.
package struct ServiceFolder: Sendable {
  package let path: String

  /// Names a folder that is there already; nothing is read yet.
  package init(path: String) {
    self.path = path
  }

  /// The path of one file.
  package func path(of file: ServiceFile) -> String { "\(path)/\(file.rawValue)" }

  /// Refuses a folder of another kind, and one whose making did not end.
  ///
  /// - Throws: `file` with `anotherKind`, `halfMade`.
  package func checkIsWhole() throws(ServiceFolderFault) {
    let isHalfMade: Bool
    do throws(FileError) {
      try FolderKind.service.require(ofFolder: path)
      isHalfMade = try HalfMadeFolder.isHalfMade(path)
    } catch { throw .file(error) }
    if isHalfMade { throw .halfMade }
  }

  /// The policy as it is now.
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

  /// The attestation service, with the keys and the record that are its own.
  package func attestationService() throws(ServiceFolderFault) -> AttestationService<SeenConfigurationsDatabase> {
    try checkIsWhole()
    try checkKeysDiffer()
    let seen: SeenConfigurationsDatabase
    do throws(LedgerFault) {
      seen = try SeenConfigurationsDatabase(path: path(of: .attestationLedger), creating: false)
    } catch { throw .ledger(error) }
    return AttestationService(
      account: try secret(.account), signing: try attestationKey(), encryption: try encryptionKey(),
      releases: try releases(), policy: try policy(), seen: seen)
  }

  /// The backend, with the keys and the record that are its own.
  package func backend() throws(ServiceFolderFault) -> Backend<IssuedBaselinesDatabase> {
    try checkIsWhole()
    try checkKeysDiffer()
    let issued = try issuedBaselines()
    return Backend(
      encryption: try encryptionKey(), signing: try verifyingKey(), issuer: try issuerSecrets(),
      policy: try policy(), issued: issued)
  }

  /// What devices must trust: printed by `service show`.
  package func issuerKey() throws(ServiceFolderFault) -> PublicKeyJWK {
    try checkIsWhole()
    return PublicKeyJWK(point: try signingKey(.issuer).publicPoint)
  }

  /// The ids of the registered measurement proof keys.
  package func proofKeyIDs() throws(ServiceFolderFault) -> [KeyID] {
    try releases().ids
  }

  /// The backend's durable record, for the owner's registry of devices.
  package func issuedBaselines() throws(ServiceFolderFault) -> IssuedBaselinesDatabase {
    try checkIsWhole()
    do throws(LedgerFault) {
      return try IssuedBaselinesDatabase(path: path(of: .issuerLedger), creating: false)
    } catch { throw .ledger(error) }
  }
}

extension ServiceFolder {
  private static let maximumKeyFileByteCount = 16384

  /// The bytes of a key file, which must be this user's alone.
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

  /// The P-256 key of a file that holds its scalar.
  func signingKey(_ file: ServiceFile) throws(ServiceFolderFault) -> P256PrivateKey {
    let bytes = try secret(file)
    guard let scalar = Secret<32>(copying: bytes.bytes) else { throw .key(file) }
    do throws(CryptographyFailure) { return try P256PrivateKey(scalar: scalar) } catch { throw .key(file) }
  }

  /// Whether attestation tokens are signed with ES256; the file decides.
  private func hasAttestationKey() throws(ServiceFolderFault) -> Bool { try has(.attestation) }

  /// Whether a key file is there that need not be.
  func has(_ file: ServiceFile) throws(ServiceFolderFault) -> Bool {
    do throws(ServiceFolderFault) {
      _ = try secret(file)
      return true
    } catch {
      if case .file(let fault) = error, fault.kind == .notFound { return false }
      throw error
    }
  }

  /// What attestation tokens are signed with.
  func attestationKey() throws(ServiceFolderFault) -> JWSKey {
    guard try hasAttestationKey() else { return .hs256(try secret(.account)) }
    return .es256(try signingKey(.attestation))
  }

  /// What verifies them: the public half where there is one.
  func verifyingKey() throws(ServiceFolderFault) -> JWSKey {
    guard try hasAttestationKey() else { return .hs256(try secret(.account)) }
    return .es256Public(try signingKey(.attestation).publicPoint)
  }

  /// What the issuer vouches for measurement tokens with.
  func issuerSecrets() throws(ServiceFolderFault) -> IssuerSecrets {
    IssuerSecrets(signing: try signingKey(.issuer), macSecret: try has(.mac) ? try macSecret() : nil)
  }

  func macSecret() throws(ServiceFolderFault) -> Secret<32> {
    let bytes = try secret(.mac)
    guard let secret = Secret<32>(copying: bytes.bytes) else { throw .key(.mac) }
    return secret
  }

  /// The backend's key for attestation tokens.
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

  /// The issuer's keys vouch for measurement tokens and for nothing else; throws when a file holds one a second time.
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
    let encryption = try encryptionKey()
    guard !encryption.hasPublicPoint(issuer.bytes) else { throw .sharedKey }
  }
}

extension JWEKey {
  /// Whether this is the elliptic key with a SEC1 uncompressed point.
  fileprivate func hasPublicPoint(_ point: Span<UInt8>) -> Bool {
    switch material {
    case .elliptic(let key): key.publicPoint.span.elementsEqual(point)
    default: false
    }
  }
}

/// Why a service folder cannot be made or used.
package enum ServiceFolderFault: Error, Equatable {
  /// A file is missing, is open to others, or cannot be read or written.
  case file(FileError)
  /// The making of the folder did not end: it has to be made again.
  case halfMade
  /// A key file does not hold what its name says.
  case key(ServiceFile)
  /// `policy.json` is not a policy.
  case policy(ServicePolicyFault)
  /// One key serves two purposes.
  case sharedKey
  /// A durable record cannot be opened.
  case ledger(LedgerFault)
  /// libcrypto or the random source failed.
  case cryptography
}

/// The files of a service folder, all of mode 0600.
package enum ServiceFile: String, Sendable, CaseIterable {
  /// The account secret, 32 bytes.
  case account = "account.key"
  /// The ES256 attestation key, a scalar of 32 bytes; without it, attestation tokens are signed with the account secret.
  case attestation = "attestation.key"
  /// The backend's key for attestation tokens: a private JWK with `alg` and `enc`.
  case attestationEncryption = "attestation-encryption.jwk"
  /// The issuer's signing key, a scalar of 32 bytes.
  case issuer = "issuer.key"
  /// What the keys that the issuer shares with devices follow from, 32 bytes; not there where it shares none.
  case mac = "mac.key"
  /// The keys of the releases, 48 bytes each: measurement proof key and evidence key.
  case releaseKeys = "release.keys"
  /// The policy.
  case policy = "policy.json"
  /// What the attestation service remembers.
  case attestationLedger = "attestation.sqlite"
  /// What the backend remembers.
  case issuerLedger = "issuer.sqlite"
}
