import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

extension ServiceFolder {
  /// The algorithm that signs attestation tokens.
  package enum AttestationSignature: Sendable {
    /// HMAC-SHA-256 with the account secret.
    case hs256
    /// ECDSA P-256 with SHA-256 and a separate key.
    case es256
  }

  /// Creates a folder with fresh keys.
  ///
  /// The creation is completed or has no effect: an incomplete folder is marked, no command uses it, and the next call
  /// clears it and begins again.
  ///
  /// - Parameters:
  ///   - path: A folder that is empty, incomplete or missing.
  ///   - releaseKeys: The keys of the approved releases, 48 bytes each: measurement proof key, evidence key.
  ///   - policy: The initial rules.
  ///   - signature: The algorithm that signs attestation tokens.
  /// - Throws: `file` with `exists` if there is already such a folder, with `anotherKind` for a folder of another kind,
  ///   or with `locked` while another process creates it. In these cases nothing is changed.
  package static func create(
    at path: String, releaseKeys: Span<UInt8>, policy: ServicePolicy, signature: AttestationSignature = .hs256
  ) throws(ServiceFolderFault) -> ServiceFolder {
    guard !releaseKeys.isEmpty, releaseKeys.count % ReleaseKeyRegistry.releaseByteCount == 0 else {
      throw .key(.releaseKeys)
    }
    let folder = ServiceFolder(path: path)
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path)
      try FolderKind.service.require(ofFolder: path)
    } catch { throw .file(error) }
    try whileLocked(path) { () throws(ServiceFolderFault) in try folder.make(releaseKeys, policy, signature) }
    return folder
  }

  /// Creates the content of the folder, or clears it on failure.
  private func make(
    _ releaseKeys: Span<UInt8>, _ policy: ServicePolicy, _ signature: AttestationSignature
  ) throws(ServiceFolderFault) {
    do throws(FileError) {
      if try IncompleteFolder.isHalfMade(path) { try IncompleteFolder.clear(path, of: Self.madeNames) }
    } catch { throw .file(error) }
    for file in ServiceFile.allCases where try isPresent(file) {
      throw .file(FileError(.exists, at: path(of: file)))
    }
    do throws(FileError) { try IncompleteFolder.mark(path, as: .service) } catch { throw .file(error) }
    do throws(ServiceFolderFault) {
      try fill(releaseKeys, policy, signature)
    } catch {
      // If this fails too, the mark remains, and the next call clears the folder.
      try? IncompleteFolder.clear(path, of: Self.madeNames)
      throw error
    }
  }

  /// Runs `body` while no other process creates or changes the service.
  private static func whileLocked<Result>(
    _ path: String, _ body: () throws(ServiceFolderFault) -> Result
  ) throws(ServiceFolderFault) -> Result {
    let lock = try lock(of: path)
    return try withExtendedLifetime(lock) { () throws(ServiceFolderFault) in try body() }
  }

  private static func lock(of path: String) throws(ServiceFolderFault) -> DirectoryLock {
    do throws(FileError) { return try DirectoryLock(directory: path) } catch { throw .file(error) }
  }

  /// The names of all files in a new folder, including those that SQLite adds.
  private static var madeNames: [String] {
    ServiceFile.allCases.flatMap { file in
      file.rawValue.hasSuffix(".sqlite")
        ? ["", "-wal", "-shm", "-journal"].map { file.rawValue + $0 } : [file.rawValue]
    }
  }

  private func fill(
    _ releaseKeys: Span<UInt8>, _ policy: ServicePolicy, _ signature: AttestationSignature
  ) throws(ServiceFolderFault) {
    try createScalar(.issuer)
    try createScalar(.agreement)
    if signature == .es256 { try createScalar(.attestation) }
    try createSecret(.account)
    try createEncryptionKey()
    try create(.releaseKeys, releaseKeys)
    do throws(ServiceLedgerFault) {
      _ = try SeenConfigurationsDatabase(path: path(of: .attestationLedger), creating: true)
      _ = try IssuedBaselinesDatabase(path: path(of: .issuerLedger), creating: true)
    } catch { throw .ledger(error) }
    try create(.policy, policy.json.pretty().span)
    do throws(FileError) { try IncompleteFolder.unmark(path) } catch { throw .file(error) }
  }

  private func isPresent(_ file: ServiceFile) throws(ServiceFolderFault) -> Bool {
    var status = stat()
    guard unsafe lstat(path(of: file), &status) != 0 else { return true }
    guard errno == ENOENT else { throw .file(FileError(.other(errno: errno), at: path(of: file))) }
    return false
  }

  /// Registers the keys of another release. Registering them again changes nothing.
  ///
  /// - Parameters:
  ///   - proofKey: The measurement proof key, 16 bytes.
  ///   - evidenceKey: The evidence key, 32 bytes.
  /// - Throws: `key` for `releaseKeys` if the proof key is registered with another evidence key or the registry is
  ///   full.
  package func register(
    _ proofKey: borrowing MeasurementProofKey, _ evidenceKey: borrowing EvidenceKey
  ) throws(ServiceFolderFault) {
    var cryptography = OpenSSLCryptography()
    let id: KeyID
    do throws(CryptographyFailure) {
      id = try measurementProofKeyID(proofKey, using: &cryptography)
    } catch { throw .cryptography }
    let known = try releases()
    if known.ids.contains(id) {
      guard known.has(id, evidenceKey) else { throw .key(.releaseKeys) }
      return
    }
    let old = try secret(.releaseKeys)
    var all = ByteBuffer<12288>()
    do throws(EncodingFault) {
      try all.append(old.bytes)
      try proofKey.withBytes { (bytes) throws(EncodingFault) in try all.append(bytes) }
      try evidenceKey.withBytes { (bytes) throws(EncodingFault) in try all.append(bytes) }
    } catch { throw .key(.releaseKeys) }
    do throws(FileError) {
      try Files.writeFileAtomically(all.bytes, at: path(of: .releaseKeys), overwrite: true)
    } catch { throw .file(error) }
  }

  /// Runs a change of the policy or the keys while no other process makes one.
  ///
  /// - Throws: `file` with `locked` while another process changes the service, and the errors of `body`.
  package func changing<Result>(
    _ body: () throws(ServiceFolderFault) -> Result
  ) throws(ServiceFolderFault) -> Result {
    try checkIsWhole()
    return try Self.whileLocked(path, body)
  }

  /// Returns the MAC key that the issuer shares with a device, 32 bytes. The first call creates the secret from which
  /// all of these keys are derived.
  package func macKey(for device: DeviceDescriptor) throws(ServiceFolderFault) -> Secret<32> {
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

  /// Creates a P-256 key for `ECDH-ES` with `A256GCM`.
  private func createEncryptionKey() throws(ServiceFolderFault) {
    let text: SecretBytes
    do throws(CryptographyFailure) { text = try JWEKey.generatedJWK() } catch { throw .cryptography }
    try create(.attestationEncryption, text.bytes)
  }
}
