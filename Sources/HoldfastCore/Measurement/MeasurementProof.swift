/// The key that proves measurements: 16 secret bytes, one for each release of an app, built into it and known to the backend.
public typealias MeasurementProofKey = Secret<16>

/// Names a measurement proof key: the first 8 bytes of `SHA-256("holdfast/1 mpk id" ‖ 0x00 ‖ MPK)`.
///
/// - Throws: when the cryptographic library fails.
public func measurementProofKeyID<Backend: Cryptography & ~Copyable>(
  _ key: borrowing MeasurementProofKey, using cryptography: inout Backend
) throws(CryptographyFailure) -> KeyID {
  var hash = try cryptography.sha256()
  hash.append(domain: "holdfast/1 mpk id")
  key.withBytes { hash.append($0) }
  return KeyID(startOf: try hash.finish())
}

/// Proves a measurement without showing it: `HMAC-SHA-256(MPK, nonce ‖ measurement)`.
///
/// Both ends compute it, the device in the verify path: no heap. Source: Approov, "Offline Security Mode".
///
/// - Parameters:
///   - key: 16 bytes.
///   - nonce: 16 bytes, never used before.
///   - measurement: IM or DM, 32 bytes.
/// - Returns: the proof, 32 bytes.
/// - Throws: when the cryptographic library fails.
public func measurementProof<Backend: Cryptography & ~Copyable>(
  key: borrowing MeasurementProofKey, nonce: FixedBytes<16>, measurement: borrowing Secret<32>,
  using cryptography: inout Backend
) throws(CryptographyFailure) -> FixedBytes<32> {
  var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
    try cryptography.hmacSHA256(key: bytes)
  }
  mac.append(nonce.bytes)
  measurement.withBytes { mac.append($0) }
  return try mac.finish()
}
