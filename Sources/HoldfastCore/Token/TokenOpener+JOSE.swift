extension TokenOpener {
  /// Leaves what a compact JWE holds, a compact JWS, in `plaintext`.
  ///
  /// Source: RFC 7516 §5.2, RFC 7518 §4.6 and §5.3.
  mutating func decryptJOSE<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>(
    _ token: Span<UInt8>, key: inout Key, keyID: KeyID, using cryptography: inout Crypto
  ) throws(TokenFault) {
    let parts: CompactJOSE<5>
    do throws(EncodingFault) { parts = try CompactJOSE(token) } catch { throw TokenFault(error) }
    let envelope = try load(parts)
    guard envelope.header.keyID == keyID else { throw .anotherDevice }
    do throws(CryptographyFailure) {
      var shared = Secret<32>()
      try key.agree(with: envelope.point, into: &shared)
      let contentKey = try envelope.contentKey(from: shared, using: &cryptography)
      try plaintext.open(key: contentKey, nonce: envelope.iv.bytes, authenticating: parts[0], using: &cryptography)
    } catch { throw .cryptography }
  }

  /// Decodes the parts of a compact JWE; ciphertext and tag go into `plaintext`.
  private mutating func load(_ parts: borrowing CompactJOSE<5>) throws(TokenFault) -> JOSEEnvelope {
    do throws(EncodingFault) {
      let header = try Self.readHeader(parts[0], &part)
      try plaintext.append(base64URL: parts[3])
      try plaintext.append(decodeFixed(parts[4], as: FixedBytes<16>.self).bytes)
      return try JOSEEnvelope(header: header, encryptedKey: parts[1], iv: parts[2])
    } catch { throw TokenFault(error) }
  }

  /// Checks the compact JWS in `plaintext` and decodes its claims.
  ///
  /// Source: RFC 7515 §5.2, RFC 7518 §3.4.
  mutating func verifyJOSE<Crypto: Cryptography & ~Copyable, Trust: IssuerTrust & ~Copyable>(
    trust: inout Trust, using cryptography: inout Crypto, into verified: inout VerifiedToken
  ) throws(TokenFault) {
    let keyID: KeyID
    let signature: FixedBytes<64>
    do throws(EncodingFault) {
      let parts = try CompactJOSE<3>(plaintext.bytes)
      let joseHeader = try Self.readHeader(parts[0], &part)
      guard joseHeader.algorithm == .es256, joseHeader.isMeasurementToken, let named = joseHeader.keyID else {
        throw .unexpected
      }
      keyID = named
      part.removeAll()
      try part.append(base64URL: parts[1])
      signature = try decodeFixed(parts[2])
    } catch { throw TokenFault(error) }
    guard let issuer = trust.trustedIssuer(keyID), case .signing(let point) = issuer else { throw .untrusted }
    do throws(CryptographyFailure) {
      var hash = try cryptography.sha256()
      hash.append(plaintext.bytes.extracting(0..<plaintext.count - 87))
      try cryptography.p256Verify(key: point, digest: try hash.finish(), signature: signature)
    } catch { throw .cryptography }
    verified.verifyingKey = keyID
    do throws(EncodingFault) { try verified.claims.decode(json: part.bytes) } catch { throw TokenFault(error) }
  }

  /// Decodes a JOSE header, at most 1024 bytes, in `part`.
  private static func readHeader(
    _ encoded: Span<UInt8>, _ part: inout ByteBuffer<2304>
  ) throws(EncodingFault) -> JOSEHeader {
    part.removeAll()
    try part.append(base64URL: encoded)
    guard part.count <= 1024 else { throw .tooLong }
    return try JOSEHeader(part.bytes)
  }
}
