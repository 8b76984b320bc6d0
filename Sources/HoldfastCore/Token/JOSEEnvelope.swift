/// What a compact JWE says about its own encryption, decoded.
///
/// Source: RFC 7516 §4 and §5.2, RFC 7518 §4.6.
struct JOSEEnvelope: ~Copyable {
  let header: JOSEHeader
  let algorithm: JOSEAlgorithm
  let point: P256Point
  let iv: FixedBytes<12>
  /// 40 bytes with a wrapped key, none with direct agreement.
  private let wrappedKey: ByteBuffer<40>

  /// The second and third part of the serialisation stand beside the header; both are base64url.
  init(
    header: consuming JOSEHeader, encryptedKey: Span<UInt8>, iv: Span<UInt8>
  ) throws(EncodingFault) {
    guard header.isAES256GCM, header.isContentTypeJWT, let algorithm = header.algorithm, algorithm != .es256,
      let point = header.ephemeralPoint
    else { throw .unexpected }
    var wrappedKey = ByteBuffer<40>()
    try wrappedKey.append(base64URL: encryptedKey)
    guard wrappedKey.count == (algorithm == .ecdhES ? 0 : 40) else { throw .unexpected }
    self.iv = try decodeFixed(iv)
    self.header = header
    self.algorithm = algorithm
    self.point = point
    self.wrappedKey = wrappedKey
  }

  /// The key of the content, derived or unwrapped.
  borrowing func contentKey<Crypto: Cryptography & ~Copyable>(
    from shared: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    let derived = try concatKDF(shared, using: &cryptography)
    guard algorithm == .ecdhESA256KW else { return derived }
    var unwrapped = Secret<32>()
    try cryptography.aes256KeyUnwrap(wrappingKey: derived, wrapped: wrappedKey.bytes, into: &unwrapped)
    return unwrapped
  }

  /// One round of Concat KDF gives the 256 bits that are needed.
  ///
  /// Source: RFC 7518 §4.6.2, SP 800-56A §5.8.1.
  private borrowing func concatKDF<Crypto: Cryptography & ~Copyable>(
    _ shared: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var hash = try cryptography.sha256()
    hash.append(bigEndian: UInt32(1))
    shared.withBytes { hash.append($0) }
    hash.append(bigEndian: UInt32(algorithm.keyDerivationID.utf8CodeUnitCount))
    hash.append(algorithm.keyDerivationID)
    hash.append(bigEndian: UInt32(header.partyU.count))
    hash.append(header.partyU.bytes)
    hash.append(bigEndian: UInt32(header.partyV.count))
    hash.append(header.partyV.bytes)
    hash.append(bigEndian: UInt32(256))
    return try hash.finishSecret()
  }
}

/// Exactly `count` bytes, at most 64, from base64url.
func decodeFixed<let count: Int>(
  _ text: Span<UInt8>, as type: FixedBytes<count>.Type = FixedBytes<count>.self
) throws(EncodingFault) -> FixedBytes<count> {
  var buffer = ByteBuffer<64>()
  try buffer.append(base64URL: text)
  guard let fixed = FixedBytes<count>(buffer.bytes) else { throw .unexpected }
  return fixed
}
