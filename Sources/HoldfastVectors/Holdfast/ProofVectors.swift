import HoldfastCore
import HoldfastOpenSSL

/// `Proof`: a proof of a measurement under a nonce and a measurement proof key.
///
/// Source: docs/protocol.md, Measurement.
struct ProofVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let proof = try test.bytes("proof")
    let keyBytes = try test.bytes("mpk")
    let nonceBytes = try test.bytes("nonce")
    let measurementBytes = try test.bytes("measurement")
    guard let key = MeasurementProofKey(copying: keyBytes.span) else {
      return .refused("mpk of \(keyBytes.count) bytes")
    }
    guard let nonce = FixedBytes<16>(nonceBytes.span) else { return .refused("nonce of \(nonceBytes.count) bytes") }
    guard let measurement = Secret<32>(copying: measurementBytes.span) else {
      return .refused("measurement of \(measurementBytes.count) bytes")
    }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let expected = try measurementProof(key: key, nonce: nonce, measurement: measurement, using: &cryptography)
      return array(expected.bytes) == proof ? .accepted : .refused("proof differs")
    } catch { return .refused("no proof") }
  }
}
