import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver

/// The measurements of an app and its host, as a client needs them.
package protocol AppMeasurer: Sendable {
  /// Measures everything, and makes evidence under a fresh salt.
  func takeEvidence(_ claims: AppClaims) throws -> TakenEvidence
  /// The same for a device, whose token is stored later. A baseline that waits for the device's token is replaced.
  func beginBaseline(for device: DeviceDescriptor, _ claims: AppClaims) throws -> TakenEvidence
  /// Removes a baseline that will get no token.
  func removeBaseline(of evidence: TakenEvidence, for device: DeviceDescriptor)
  /// Returns a digest of the components that show a debugger, an injection or a preloaded library, which take little time.
  func integrityChecks() throws -> Digest
  /// Returns a digest of all components.
  func measurement() throws -> Digest
  /// Returns the ids of the components that differ from the baselines of the enrolments, each once.
  func changedComponents() -> [String]
  /// Returns the secret of this host, which is kept outside the state folder.
  func hostSecret() throws -> Secret<32>
}

/// Evidence, with digests of the measurement on which it is based. Anyone who reads the evidence knows the measurements.
package struct TakenEvidence: Sendable {
  /// The evidence.
  package let bytes: [UInt8]
  /// The measurement configuration.
  package let configuration: [UInt8]
  /// The digest of ``AppMeasurer/integrityChecks()``.
  package let checks: Digest
  /// The digest of ``AppMeasurer/measurement()``.
  package let measurement: Digest

  /// Creates evidence.
  package init(bytes: [UInt8], configuration: [UInt8], checks: Digest, measurement: Digest) {
    (self.bytes, self.configuration) = (bytes, configuration)
    (self.checks, self.measurement) = (checks, measurement)
  }
}

/// The measurements of the running process and its host.
struct LiveAppMeasurer: AppMeasurer {
  let prover: Prover
  let keys: ProofKeys

  private static let checkIDs = [ComponentID("app.debug"), ComponentID("app.injected")]

  func takeEvidence(_ claims: AppClaims) throws -> TakenEvidence { try taken(prover.takeBaseline(as: claims)) }

  func beginBaseline(for device: DeviceDescriptor, _ claims: AppClaims) throws -> TakenEvidence {
    try taken(prover.begin(for: device.deviceID, as: claims, replacing: true))
  }

  func removeBaseline(of evidence: TakenEvidence, for device: DeviceDescriptor) {
    prover.folder.removeBegun(configuration: evidence.configuration, for: device.deviceID)
  }

  func integrityChecks() throws -> Digest {
    var measurer = Measurer(keys: keys)
    return try Self.digest(measurer.integrityChecks().app)
  }

  func measurement() throws -> Digest {
    let measurement = try prover.measure()
    return try Self.digest(measurement.app + measurement.device)
  }

  func changedComponents() -> [String] {
    guard let explained = try? prover.explain() else { return [] }
    let entries = explained.flatMap { $0.changes.entries }.filter { $0.state != .unchanged }
    return Set(entries.map { "\($0.id)" }).sorted()
  }

  func hostSecret() throws -> Secret<32> { try HostSecret(HostFiles()).readOrCreate() }

  private func taken(_ baseline: Baseline) throws -> TakenEvidence {
    let measurement = baseline.measurement
    return TakenEvidence(
      bytes: baseline.evidence, configuration: baseline.configuration.encoded(),
      checks: try Self.digest(measurement.app.filter { Self.checkIDs.contains($0.id) }),
      measurement: try Self.digest(measurement.app + measurement.device))
  }

  private static func digest(_ components: [Component]) throws(CryptographyFailure) -> Digest {
    var encoded: [UInt8] = []
    for component in components { component.encode(into: &encoded) }
    return try sha256(encoded.span)
  }
}

/// Returns the SHA-256 digest of bytes.
func sha256(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> Digest {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(bytes)
  return try hash.finish()
}
