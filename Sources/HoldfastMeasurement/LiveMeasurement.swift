import HoldfastCore
import HoldfastOpenSSL

/// What app and device look like at one moment.
public struct LiveMeasurement: Sendable {
  /// How long one component took.
  public struct Duration: Sendable {
    public let id: ComponentID
    public let nanoseconds: UInt64
  }

  /// The components of app scope that were measured, sorted by the bytes of id.
  public internal(set) var app: [Component] = []
  /// The components of device scope that were measured, sorted by the bytes of id.
  public internal(set) var device: [Component] = []
  /// What was noticed, for the attestation service: `agent`, `debugger`, `injection`; sorted.
  public internal(set) var properties: [BoundedText<32>] = []
  /// Whether nothing but `device.secret` tells this device from another of its kind, as in most containers.
  public internal(set) var restsOnDeviceSecretAlone = false
  /// How long each component took, in the order in which they were done: `app.image` beside the others, on a thread of its
  /// own. What several need is with the first.
  public internal(set) var durations: [Duration] = []

  /// What is wrong with the process.
  public internal(set) var findings: Set<Finding> = []
  /// Where the kernel's fs-verity answered for bytes.
  public internal(set) var verity = VerityUse()

  /// Where the kernel's fs-verity answered for bytes that were not read.
  public struct VerityUse: Sendable, Equatable {
    /// Whether the executable file has it.
    public internal(set) var hasImage = false
    /// How many executable segments are of files that have it, and unchanged in memory.
    public internal(set) var segmentCount = 0
    /// How many executable segments there are.
    public internal(set) var allSegmentCount = 0
  }

  mutating func note(_ property: StaticString) {
    properties.append(BoundedText(property))
  }

  /// The same, with exactly the components that a configuration names, in its order; `unknownComponent` when one is missing.
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

/// Proves that the app and the device are as they were when the configuration was made.
///
/// Source: Approov, "Offline Security Mode", `getIntegrityMeasurementProof`. Everything is measured anew.
///
/// - Parameters:
///   - nonce: 16 bytes, never used before.
///   - configuration: the whole of `measurement_config.bin`.
/// - Returns: `HMAC-SHA-256(MPK, nonce ‖ IM)`, 32 bytes.
/// - Throws: `nonceLength`, `malformedConfiguration`, `unknownKey`, `unknownComponent`, and when anything that was to be
///   measured cannot be read.
public func integrityMeasurementProof(
  nonce: [UInt8], configuration: [UInt8]
) throws(MeasurementError) -> [UInt8] {
  let request = try ProofRequest(nonce: nonce, configuration: configuration)
  var measurer = Measurer()
  return try request.proof(of: measurer.integrityMeasurement(for: request.configuration))
}

/// Proves that the device is the one of when the configuration was made, whatever became of the app.
///
/// Source: Approov, "Offline Security Mode", `getDeviceMeasurementProof`. Everything is measured anew.
///
/// - Parameters:
///   - nonce: 16 bytes, never used before.
///   - configuration: the whole of `measurement_config.bin`.
/// - Returns: `HMAC-SHA-256(MPK, nonce ‖ DM)`, 32 bytes.
/// - Throws: as ``integrityMeasurementProof(nonce:configuration:)`` does.
public func deviceMeasurementProof(
  nonce: [UInt8], configuration: [UInt8]
) throws(MeasurementError) -> [UInt8] {
  let request = try ProofRequest(nonce: nonce, configuration: configuration)
  var measurer = Measurer()
  return try request.proof(of: measurer.deviceMeasurement(for: request.configuration))
}

/// What is checked before anything is measured.
private struct ProofRequest: ~Copyable {
  let nonce: FixedBytes<16>
  let configuration: MeasurementConfiguration
  let key: MeasurementProofKey

  init(nonce: [UInt8], configuration: [UInt8]) throws(MeasurementError) {
    guard let nonce = FixedBytes<16>(nonce.span) else { throw .nonceLength }
    let decoded = try MeasurementConfiguration(read: configuration)
    BuiltInKeys.warnOfDevelopmentKey()
    guard let key = try BuiltInKeys.key(named: decoded.mpkID) else { throw .unknownKey }
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
  /// Reads the whole of `measurement_config.bin`.
  fileprivate init(read bytes: [UInt8]) throws(MeasurementError) {
    do throws(EncodingFault) { try self.init(decoding: bytes.span) } catch { throw .malformedConfiguration(error) }
  }
}
