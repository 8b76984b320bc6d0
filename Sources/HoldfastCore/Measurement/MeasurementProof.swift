/// The measurement proof key (MPK): 16 secret bytes, one for each release of an app, built into it and known to the
/// backend.
public typealias MeasurementProofKey = Secret<16>

/// Returns the id of a measurement proof key: the first 8 bytes of `SHA-256("holdfast/1 mpk id" ‖ 0x00 ‖ MPK)`.
///
/// - Throws: if the cryptographic library fails.
public func measurementProofKeyID<Backend: Cryptography & ~Copyable>(
  _ key: borrowing MeasurementProofKey, using cryptography: inout Backend
) throws(CryptographyFailure) -> KeyID {
  var hash = try cryptography.sha256()
  hash.append(domain: "holdfast/1 mpk id")
  key.withBytes { hash.append($0) }
  return KeyID(startOf: try hash.finish())
}

/// Computes the proof of a measurement, which does not reveal it: `HMAC-SHA-256(MPK, nonce ‖ measurement)`.
///
/// Both ends compute it, the device without a heap. Source: Approov, "Offline Security Mode".
///
/// - Parameters:
///   - key: the measurement proof key, 16 bytes.
///   - nonce: 16 bytes, never used before.
///   - measurement: IM or DM, 32 bytes.
///   - cryptography: an implementation of the primitives.
/// - Returns: the proof, 32 bytes.
/// - Throws: if the cryptographic library fails.
@inlinable
public func measurementProof<Backend: Cryptography & ~Copyable>(
  key: borrowing MeasurementProofKey, nonce: Nonce, measurement: borrowing Secret<32>,
  using cryptography: inout Backend
) throws(CryptographyFailure) -> MAC {
  var mac = try beginMeasurementProof(key: key, nonce: nonce, using: &cryptography)
  measurement.withBytes { mac.append($0) }
  return try mac.finish()
}

/// Begins the proof of any measurement under this key and nonce. Append the measurement, and finish it. A copy that is made before
/// that is the beginning of another measurement's proof.
@inlinable
func beginMeasurementProof<Backend: Cryptography & ~Copyable>(
  key: borrowing MeasurementProofKey, nonce: Nonce, using cryptography: inout Backend
) throws(CryptographyFailure) -> Backend.HMACSHA256 {
  var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
    try cryptography.hmacSHA256(key: bytes)
  }
  mac.append(nonce.bytes)
  return mac
}

/// The root secret of a release, from which its two keys are derived: 16 bytes, a line of `mpk.key`.
///
/// Only the build of the app and the owner of the service handle it. Neither the app nor a token contains it.
package typealias ReleaseRoot = Secret<16>

/// The key that authenticates evidence: 32 secret bytes, one for each release of an app.
///
/// Only the app and the attestation service know it. It never enters a token: every token contains the measurement
/// proof key, so anyone who opened one device could otherwise forge evidence for all devices.
public typealias EvidenceKey = Secret<32>

/// Derives the key that authenticates a release's evidence:
/// `HKDF-SHA-256(ikm: root, no salt, info: "holdfast/1 evidence key", 32 bytes)`.
///
/// Source: RFC 5869 §2.
///
/// - Parameter root: the root secret of the release, 16 bytes.
/// - Returns: 32 secret bytes.
/// - Throws: if the cryptographic library fails.
package func evidenceKey<Backend: Cryptography & ~Copyable>(
  of root: borrowing ReleaseRoot, using cryptography: inout Backend
) throws(CryptographyFailure) -> EvidenceKey {
  try releaseKey("holdfast/1 evidence key", of: root, using: &cryptography)
}

/// Derives the key that proves a release's measurements:
/// `HKDF-SHA-256(ikm: root, no salt, info: "holdfast/1 measurement proof key", 16 bytes)`.
///
/// Source: RFC 5869 §2.
///
/// - Parameter root: the root secret of the release, 16 bytes.
/// - Returns: 16 secret bytes.
/// - Throws: if the cryptographic library fails.
package func measurementProofKey<Backend: Cryptography & ~Copyable>(
  of root: borrowing ReleaseRoot, using cryptography: inout Backend
) throws(CryptographyFailure) -> MeasurementProofKey {
  try releaseKey("holdfast/1 measurement proof key", of: root, using: &cryptography)
}

private func releaseKey<let count: Int, Backend: Cryptography & ~Copyable>(
  _ label: StaticString, of root: borrowing ReleaseRoot, using cryptography: inout Backend
) throws(CryptographyFailure) -> Secret<count> {
  var info = ByteBuffer<64>()
  do throws(EncodingFault) { try info.append(label) } catch { throw CryptographyFailure() }
  var key = Secret<count>()
  try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
    try root.withBytes { (inputKey: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: inputKey, salt: Span(), info: info.bytes, into: &output)
    }
  }
  return key
}
