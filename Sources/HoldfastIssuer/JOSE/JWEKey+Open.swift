import HoldfastCore
import HoldfastOpenSSL

extension JWEKey {
  /// Decrypts a compact JWE, at most 8192 bytes.
  ///
  /// Source: RFC 7516 §5.2. `contentType` is what `cty` must be, where the header has one.
  /// Throws `malformed` or `unexpected` before any key is used, `refused` for header parameters that are never honoured,
  /// and one opaque `cryptography` for whatever does not decrypt.
  public mutating func open(_ token: Span<UInt8>, contentType: String) throws(JOSEFault) -> SecretBytes {
    guard token.count <= Self.tokenByteLimit else { throw .malformed }
    let parts = try CompactParts(token, count: 5)
    let header = try HeaderParameters(parts[0])
    try header.require("alg", management.rawValue)
    try header.require("enc", encryption.rawValue)
    try header.permit("cty", contentType)
    if let keyID { try header.permit("kid", keyID) }
    let wrapped = try decodePart(parts[1])
    let vector = try decodePart(parts[2])
    let ciphertext = try decodePart(parts[3])
    let tag = try decodePart(parts[4])
    guard vector.count == encryption.vectorByteCount, tag.count == encryption.tagByteCount else { throw .unexpected }
    let contentKey = try contentKey(header: header, wrapped: wrapped.bytes)
    do throws(CryptographyFailure) {
      return try encryption.open(
        ciphertext.bytes, tag: tag.bytes, key: contentKey.bytes, vector: vector.bytes, authenticating: parts[0])
    } catch { throw .cryptography }
  }

  static var tokenByteLimit: Int { 8192 }

  private mutating func contentKey(
    header: HeaderParameters, wrapped: Span<UInt8>
  ) throws(JOSEFault) -> SecretBytes {
    switch management.method {
    case .direct:
      guard wrapped.isEmpty else { throw .unexpected }
      return try material.withOctets { (key) throws(JOSEFault) in SecretBytes(copying: key) }
    case .agree:
      guard wrapped.isEmpty else { throw .unexpected }
      return try agreedKey(header: header, algorithm: encryption.rawValue, byteCount: encryption.keyByteCount)
    case .agreeAndWrap(let count):
      let wrappingKey = try agreedKey(header: header, algorithm: management.rawValue, byteCount: count)
      return try unwrap(wrapped, with: wrappingKey.bytes)
    case .wrap:
      return try material.withOctets { (key) throws(JOSEFault) in try unwrap(wrapped, with: key) }
    case .gcmWrap:
      return try gcmUnwrapped(header: header, wrapped: wrapped)
    case .oaep(let hash):
      return try rsaDecrypted(wrapped, hash: hash)
    }
  }

  /// Source: RFC 7518 §4.6.
  private mutating func agreedKey(
    header: HeaderParameters, algorithm: String, byteCount: Int
  ) throws(JOSEFault) -> SecretBytes {
    guard let curve = material.curve else { throw .unexpected }
    let point = try header.ephemeralPoint(curve: curve)
    let parties = JWEParties(producer: try header.bytes("apu") ?? [], recipient: try header.bytes("apv") ?? [])
    let shared = try material.agree(with: point.span)
    return try parties.deriveKey(from: shared.bytes, algorithm: algorithm, byteCount: byteCount)
  }

  /// Source: RFC 7518 §4.4.
  private func unwrap(_ wrapped: Span<UInt8>, with key: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    guard wrapped.count == encryption.keyByteCount + 8 else { throw .unexpected }
    do throws(CryptographyFailure) {
      return try AESKeyWrap.unwrap(key: key, wrapped: wrapped)
    } catch { throw .cryptography }
  }

  /// Source: RFC 7518 §4.7.
  private func gcmUnwrapped(header: HeaderParameters, wrapped: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    guard wrapped.count == encryption.keyByteCount, let nonce = try header.bytes("iv"), nonce.count == 12,
      let tagBytes = try header.bytes("tag"), let tag = FixedBytes<16>(tagBytes.span)
    else { throw .unexpected }
    return try material.withOctets { (key) throws(JOSEFault) in
      var contentKey = SecretBytes(copying: wrapped)
      do throws(CryptographyFailure) {
        var bytes = contentKey.mutableBytes
        try AESGCM.open(key: key, nonce: nonce.span, authenticating: Span(), message: &bytes, tag: tag)
      } catch { throw .cryptography }
      return contentKey
    }
  }

  /// A key of the right size whatever came: a wrong one fails later, with the content, and shows nothing.
  ///
  /// Source: RFC 7516 §11.5.
  private func rsaDecrypted(_ wrapped: Span<UInt8>, hash: OAEPHash) throws(JOSEFault) -> SecretBytes {
    var substitute = SecretBytes(zeros: encryption.keyByteCount)
    var random = SystemRandom()
    do throws(RandomFailure) {
      var bytes = substitute.mutableBytes
      try random.fill(&bytes)
    } catch { throw .cryptography }
    do throws(JOSEFault) {
      let contentKey = try material.decryptOAEP(wrapped, hash: hash)
      return contentKey.count == encryption.keyByteCount ? contentKey : substitute
    } catch {
      return substitute
    }
  }
}
