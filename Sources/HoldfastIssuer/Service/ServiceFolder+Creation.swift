import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

extension ServiceFolder {
  /// How attestation tokens are signed.
  public enum AttestationSignature: Sendable {
    /// With the account secret.
    case hs256
    /// With a key of its own.
    case es256
  }

  /// Makes a folder with fresh keys.
  ///
  /// - Parameters:
  ///   - path: a folder that is empty, or is not there yet.
  ///   - proofKeys: the measurement proof keys of the approved releases, 16 bytes each, one behind the other.
  ///   - policy: what is approved.
  /// - Throws: `file` with `exists` where there is such a folder already, and nothing is changed.
  public static func create(
    at path: String, proofKeys: Span<UInt8>, policy: ServicePolicy, signature: AttestationSignature = .hs256
  ) throws(ServiceFolderFault) -> ServiceFolder {
    guard !proofKeys.isEmpty, proofKeys.count % 16 == 0 else { throw .key(.proofKeys) }
    let folder = ServiceFolder(path: path)
    do throws(FileError) { try Files.createPrivateDirectory(at: path) } catch { throw .file(error) }
    try folder.createScalar(.issuer)
    if signature == .es256 { try folder.createScalar(.attestation) }
    try folder.createSecret(.account)
    try folder.createEncryptionKey()
    try folder.create(.proofKeys, proofKeys)
    do throws(LedgerFault) {
      _ = try SeenConfigurationsDatabase(path: folder.path(of: .attestationLedger), creating: true)
      _ = try IssuedBaselinesDatabase(path: folder.path(of: .issuerLedger), creating: true)
    } catch { throw .ledger(error) }
    try folder.create(.policy, policy.json.pretty().span)
    return folder
  }

  /// Registers one more measurement proof key, 16 bytes; nothing changes when it is there already.
  public func register(_ key: borrowing MeasurementProofKey) throws(ServiceFolderFault) {
    var cryptography = OpenSSLCryptography()
    let id: KeyID
    do throws(CryptographyFailure) {
      id = try measurementProofKeyID(key, using: &cryptography)
    } catch { throw .cryptography }
    guard try !proofKeyIDs().contains(id) else { return }
    let old = try secret(.proofKeys)
    var all = ByteBuffer<16384>()
    do throws(EncodingFault) {
      try all.append(old.bytes)
      try key.withBytes { (bytes) throws(EncodingFault) in try all.append(bytes) }
    } catch { throw .key(.proofKeys) }
    do throws(FileError) {
      try Files.writeFileAtomically(all.bytes, at: path(of: .proofKeys), overwrite: true)
    } catch { throw .file(error) }
  }

  /// The key that the issuer shares with a device. The first one makes the secret that all of them follow from.
  public func macKey(for device: DeviceDescriptor) throws(ServiceFolderFault) -> Secret<32> {
    try checkKeysDiffer()
    do throws(ServiceFolderFault) { try createSecret(.mac) } catch {
      guard case .file(let fault) = error, fault.kind == .exists else { throw error }
    }
    let secret = try macSecret()
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try deviceMACKey(from: secret, for: device.deviceID, device.publicKey.point, using: &cryptography)
    } catch { throw .cryptography }
  }

  private func create(_ file: ServiceFile, _ bytes: Span<UInt8>) throws(ServiceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: path(of: file), overwrite: false)
    } catch { throw .file(error) }
  }

  private func createScalar(_ file: ServiceFile) throws(ServiceFolderFault) {
    let scalar: Secret<32>
    do throws(CryptographyFailure) { scalar = try P256PrivateKey().scalar() } catch { throw .cryptography }
    try scalar.withBytes { (bytes) throws(ServiceFolderFault) in try create(file, bytes) }
  }

  private func createSecret(_ file: ServiceFile) throws(ServiceFolderFault) {
    var random = SystemRandom()
    let secret: Secret<32>
    do throws(RandomFailure) { secret = try random.secret() } catch { throw .cryptography }
    try secret.withBytes { (bytes) throws(ServiceFolderFault) in try create(file, bytes) }
  }

  /// A P-256 key for `ECDH-ES` with `A256GCM`.
  private func createEncryptionKey() throws(ServiceFolderFault) {
    var text = ByteBuffer<1024>()
    do throws(CryptographyFailure) {
      let key = try ECPrivateKey(generatingOn: .p256)
      var scalar = SecretBytes(zeros: 32)
      var bytes = scalar.mutableBytes
      try key.writeScalar(into: &bytes)
      let json = publicJWK(curve: .p256, point: key.publicPoint).compact()
      do throws(EncodingFault) {
        try text.append(json.span.extracting(droppingLast: 1))
        try text.append(#","d":""#)
        try text.append(asBase64URL: scalar.bytes)
        try text.append(#"","alg":"ECDH-ES","enc":"A256GCM"}"#)
        try text.append(UInt8(ascii: "\n"))
      } catch { throw CryptographyFailure() }
    } catch { throw .cryptography }
    try create(.attestationEncryption, text.bytes)
  }
}
