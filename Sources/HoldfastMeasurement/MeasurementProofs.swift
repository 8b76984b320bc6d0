import HoldfastCore
import HoldfastOpenSSL

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
