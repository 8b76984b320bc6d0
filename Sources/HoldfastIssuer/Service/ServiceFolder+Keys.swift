import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

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
