import HoldfastCore
import HoldfastOpenSSL

/// A measurement of the app and its host at one moment.
public struct LiveMeasurement: Sendable {
  /// The duration of the measurement of one component.
  public struct Duration: Sendable {
    /// The id of the component.
    public let id: ComponentID
    /// The duration in nanoseconds.
    public let nanoseconds: UInt64
  }

  /// The components of app scope that were measured, sorted by the bytes of id.
  public internal(set) var app: [Component] = []
  /// The components of device scope that were measured, sorted by the bytes of id.
  public internal(set) var device: [Component] = []
  /// The observations for the attestation service: `agent`, `debugger`, `injection`; sorted.
  public internal(set) var properties: [BoundedText<32>] = []
  /// `ID` and `VERSION_ID` of `/etc/os-release`; nil where it has none, or one of more than 64 bytes.
  package internal(set) var systemID, systemVersion: BoundedText<64>?
  /// Whether only `device.secret` distinguishes this host from others of its kind, as in most containers.
  public internal(set) var restsOnDeviceSecretAlone = false
  /// The durations of the components in the order of their completion. A separate thread measures `app.image` at the same time.
  /// The time for data that several components need is part of the first one's duration. Several threads make tree digests: their
  /// duration is the time that all threads spent on them.
  public internal(set) var durations: [Duration] = []

  /// The findings about the process.
  public internal(set) var findings: Set<Finding> = []
  /// The extent to which the kernel's fs-verity replaced the reading of bytes.
  public internal(set) var verity = VerityUse()

  /// Whether `app.image` and `app.text` are digests that this process already knew, because their bytes cannot have changed.
  public internal(set) var isCodeKnown = false

  /// Whether `app.image` and `app.text` are tree digests.
  public internal(set) var hasTreeDigests = false

  /// The extent to which the kernel's fs-verity replaced the reading of a file's bytes.
  public struct VerityUse: Sendable, Equatable {
    /// Whether the executable file has fs-verity.
    public internal(set) var hasImage = false
    /// The number of executable segments whose files have fs-verity and that are unchanged in memory.
    public internal(set) var segmentCount = 0
    /// The number of all executable segments.
    public internal(set) var allSegmentCount = 0
  }

  /// Adds properties for the attestation service, each once, in their order.
  package mutating func add(_ more: [BoundedText<32>]) {
    properties += more.filter { !properties.contains($0) }
    properties.sort { $0.precedes($1) }
  }

  mutating func note(_ property: StaticString) {
    properties.append(BoundedText(property))
  }

  /// Returns the measurement with exactly the components of a configuration, in its order; throws `unknownComponent` if one is
  /// missing.
  func components(named configuration: MeasurementConfiguration) throws(MeasurementError) -> LiveMeasurement {
    var named = self
    named.app = try Self.components(configuration.appIDs, of: app)
    named.device = try Self.components(configuration.deviceIDs, of: device)
    return named
  }

  private static func components(
    _ ids: [ComponentID], of measured: [Component]
  ) throws(MeasurementError) -> [Component] {
    var components: [Component] = []
    for id in ids {
      guard let component = measured.first(where: { $0.id == id }) else { throw .unknownComponent }
      components.append(component)
    }
    return components
  }
}

/// Proves that the app and its host have not changed since the configuration was made.
///
/// Source: Approov, "Offline Security Mode", `getIntegrityMeasurementProof`. Everything is measured again, except code
/// that is known to be unchanged, if the configuration permits that.
///
/// - Parameters:
///   - nonce: 16 bytes, never used before.
///   - configuration: the complete content of `measurement_config.bin`.
///   - keys: the keys of the app's releases.
/// - Returns: `HMAC-SHA-256(MPK, nonce ‖ IM)`, 32 bytes.
/// - Throws: `nonceLength`, `malformedConfiguration`, `unknownKey`, `unknownComponent`, and another error if a source cannot
///   be read.
public func integrityMeasurementProof(
  nonce: [UInt8], configuration: [UInt8], keys: ProofKeys
) throws(MeasurementError) -> [UInt8] {
  let request = try ProofRequest(nonce: nonce, configuration: configuration, keys: keys)
  var measurer = Measurer(keys: keys)
  return try request.proof(of: measurer.integrityMeasurement(for: request.configuration))
}

/// Proves that the host is the one for which the configuration was made, independent of the state of the app.
///
/// Source: Approov, "Offline Security Mode", `getDeviceMeasurementProof`. All components of the host are measured again.
///
/// - Parameters:
///   - nonce: 16 bytes, never used before.
///   - configuration: the complete content of `measurement_config.bin`.
///   - keys: the keys of the app's releases.
/// - Returns: `HMAC-SHA-256(MPK, nonce ‖ DM)`, 32 bytes.
/// - Throws: the errors of ``integrityMeasurementProof(nonce:configuration:keys:)``.
public func deviceMeasurementProof(
  nonce: [UInt8], configuration: [UInt8], keys: ProofKeys
) throws(MeasurementError) -> [UInt8] {
  let request = try ProofRequest(nonce: nonce, configuration: configuration, keys: keys)
  var measurer = Measurer(keys: keys)
  return try request.proof(of: measurer.deviceMeasurement(for: request.configuration))
}

/// The input of a proof, checked before any measurement.
private struct ProofRequest: ~Copyable {
  let nonce: Nonce
  let configuration: MeasurementConfiguration
  let key: MeasurementProofKey

  init(nonce: [UInt8], configuration: [UInt8], keys: ProofKeys) throws(MeasurementError) {
    guard let nonce = Nonce(nonce.span) else { throw .nonceLength }
    let decoded = try MeasurementConfiguration(read: configuration)
    guard let key = try keys.provingKey(named: decoded.mpkID) else { throw .unknownKey }
    self.nonce = nonce
    self.configuration = decoded
    self.key = key
  }

  func proof(of measurement: borrowing Secret<32>) throws(MeasurementError) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let proof = try measurementProof(key: key, nonce: nonce, measurement: measurement, using: &cryptography)
      var bytes: [UInt8] = []
      bytes.append(proof.bytes)
      return bytes
    } catch {
      throw .cryptography
    }
  }
}

extension MeasurementConfiguration {
  /// Decodes the complete content of `measurement_config.bin`.
  fileprivate init(read bytes: [UInt8]) throws(MeasurementError) {
    do throws(EncodingFault) { try self.init(decoding: bytes.span) } catch { throw .malformedConfiguration(error) }
  }
}
