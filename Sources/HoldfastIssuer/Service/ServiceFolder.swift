import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

/// The folder S in which the simulated attestation service and backend keep their keys and records; mode 0700.
public struct ServiceFolder: Sendable {
  public let path: String

  /// Names a folder that is there already; nothing is read yet.
  public init(path: String) {
    self.path = path
  }

  /// The path of one file.
  public func path(of file: ServiceFile) -> String { "\(path)/\(file.rawValue)" }

  /// Refuses a folder of another kind, and one whose making did not end.
  ///
  /// - Throws: `file` with `anotherKind`, `halfMade`.
  public func checkIsWhole() throws(ServiceFolderFault) {
    let isHalfMade: Bool
    do throws(FileError) {
      try FolderKind.service.require(ofFolder: path)
      isHalfMade = try HalfMadeFolder.isHalfMade(path)
    } catch { throw .file(error) }
    if isHalfMade { throw .halfMade }
  }

  /// The policy as it is now.
  public func policy() throws(ServiceFolderFault) -> ServicePolicy {
    try checkIsWhole()
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: path(of: .policy), limit: ServicePolicy.maximumByteCount, requirements: .secret)
    } catch { throw .file(error) }
    do throws(ServicePolicyFault) { return try ServicePolicy(json: bytes) } catch { throw .policy(error) }
  }

  /// Replaces the policy.
  public func write(_ policy: ServicePolicy) throws(ServiceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json.pretty(), at: path(of: .policy), overwrite: true)
    } catch { throw .file(error) }
  }

  /// The attestation service, with the keys and the record that are its own.
  public func attestationService() throws(ServiceFolderFault) -> AttestationService<SeenConfigurationsDatabase> {
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
  public func backend() throws(ServiceFolderFault) -> Backend<IssuedBaselinesDatabase> {
    try checkIsWhole()
    try checkKeysDiffer()
    let issued = try issuedBaselines()
    return Backend(
      encryption: try encryptionKey(), signing: try verifyingKey(), issuer: try issuerSecrets(),
      policy: try policy(), issued: issued)
  }

  /// What devices must trust: printed by `service show`.
  public func issuerKey() throws(ServiceFolderFault) -> PublicKeyJWK {
    try checkIsWhole()
    return PublicKeyJWK(point: try signingKey(.issuer).publicPoint)
  }

  /// The ids of the registered measurement proof keys.
  public func proofKeyIDs() throws(ServiceFolderFault) -> [KeyID] {
    try releases().ids
  }

  /// The backend's durable record, for the owner's registry of devices.
  public func issuedBaselines() throws(ServiceFolderFault) -> IssuedBaselinesDatabase {
    try checkIsWhole()
    do throws(LedgerFault) {
      return try IssuedBaselinesDatabase(path: path(of: .issuerLedger), creating: false)
    } catch { throw .ledger(error) }
  }
}
