/// An opener of measurement tokens for one device. Its buffers are its only memory; it allocates nothing.
public struct TokenOpener: ~Copyable {
  /// The length of the longest token, in bytes.
  package static var maximumTokenByteCount: Int { TokenBuffer.capacity }

  /// The context from which the content key of a COSE token is derived.
  var context = ByteBuffer<64>()
  package var plaintext = TokenBuffer()
  /// A decoded part of a JOSE token: a header, then the claims.
  var part = TokenPartBuffer()

  /// Creates an opener with empty buffers.
  public init() {}

  /// Decrypts a token, checks its signature or MAC and decodes its claims.
  ///
  /// - Parameters:
  ///   - token: `COSE_Encrypt` or a compact JWE, at most 3072 bytes.
  ///   - encoding: one of these two encodings; a reference is `malformed`.
  ///   - key: the device's key.
  ///   - keyID: the id of that key, which the token must name.
  ///   - trust: the issuer keys whose signatures and MACs count.
  ///   - acceptsUnsigned: whether bare claims (COSE only) are accepted, too.
  ///   - acceptsMAC: whether claims under a MAC (COSE only) are accepted, too.
  ///   - cryptography: an implementation of the primitives.
  ///   - verified: becomes the token, whose audience and times are not checked yet; not to be used if this throws.
  /// - Throws: the first fault that is found; see ``TokenFault``.
  public mutating func open<
    Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Trust: IssuerTrust & ~Copyable
  >(
    _ token: Span<UInt8>, encoding: TokenEncoding, key: inout Key, keyID: KeyID, trust: inout Trust,
    acceptsUnsigned: Bool, acceptsMAC: Bool, using cryptography: inout Crypto, into verified: inout AuthenticatedToken
  ) throws(TokenFault) {
    guard token.count <= Self.maximumTokenByteCount else { throw .malformed }
    defer {
      context.removeAll()
      plaintext.removeAll()
      part.removeAll()
    }
    switch encoding {
    case .reference:
      throw .malformed
    case .cose:
      try decryptCOSE(token, key: &key, keyID: keyID, using: &cryptography)
      try verifyCOSE(
        trust: &trust, acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC, using: &cryptography, into: &verified)
    case .jose:
      try decryptJOSE(token, key: &key, keyID: keyID, using: &cryptography)
      try verifyJOSE(trust: &trust, using: &cryptography, into: &verified)
    }
  }
}

extension TokenOpener {
  /// Decrypts a `COSE_Encrypt` and leaves its contents in `plaintext`.
  ///
  /// Source: RFC 9052 §5.3, RFC 9053 §5.2 and §6.3.1.
  package mutating func decryptCOSE<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>(
    _ token: Span<UInt8>, key: inout Key, keyID: KeyID, using cryptography: inout Crypto
  ) throws(TokenFault) {
    let envelope: COSEEnvelope
    var encryptionContext = ByteBuffer<16>()
    do throws(EncodingFault) {
      envelope = try COSEEnvelope(token)
      try context.appendCOSEKeyContext(recipientProtected: envelope.recipientProtected)
      try encryptionContext.appendCOSEEncryptionContext()
      try plaintext.append(envelope.ciphertext)
    } catch { throw TokenFault(error) }
    guard envelope.recipientKeyID == keyID else { throw .anotherDevice }
    do throws(CryptographyFailure) {
      var shared = Secret<32>()
      try key.agree(with: envelope.ephemeralPoint, into: &shared)
      let contentKey = try deriveCOSEContentKey(from: shared, using: &cryptography)
      try plaintext.open(
        key: contentKey, nonce: envelope.iv, authenticating: encryptionContext.bytes, using: &cryptography)
    } catch { throw .cryptography }
  }

  private func deriveCOSEContentKey<Crypto: Cryptography & ~Copyable>(
    from shared: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var contentKey = Secret<32>()
    try contentKey.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try shared.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: context.bytes, into: &output)
      }
    }
    return contentKey
  }

  /// Checks the `COSE_Sign1` or `COSE_Mac0` in `plaintext` and decodes its claims. Bare claims, and claims under a MAC,
  /// count only if the caller accepts them.
  ///
  /// Source: RFC 9052 §4.4 and §6.3.
  func verifyCOSE<Crypto: Cryptography & ~Copyable, Trust: IssuerTrust & ~Copyable>(
    trust: inout Trust, acceptsUnsigned: Bool, acceptsMAC: Bool, using cryptography: inout Crypto,
    into verified: inout AuthenticatedToken
  ) throws(TokenFault) {
    let issued: COSEIssuedClaims
    do throws(EncodingFault) {
      if acceptsUnsigned, try CBORReader(plaintext.bytes).nextMajorType() == .map {
        verified.verifyingKey = nil
        return try verified.claims.decode(cbor: plaintext.bytes)
      }
      issued = try COSEIssuedClaims(plaintext.bytes)
    } catch { throw TokenFault(error) }
    guard let issuer = trust.trustedIssuer(issued.issuerKeyID), acceptsMAC || !issuer.isMAC else { throw .untrusted }
    do throws(CryptographyFailure) { try issuer.verify(issued, using: &cryptography) } catch { throw .cryptography }
    verified.verifyingKey = issued.issuerKeyID
    do throws(EncodingFault) { try verified.claims.decode(cbor: issued.payload) } catch { throw TokenFault(error) }
  }
}

extension IssuerKey {
  /// Throws unless the claims were signed with this key or, for a MAC key, authenticated with it: the key decides
  /// which.
  fileprivate borrowing func verify<Crypto: Cryptography & ~Copyable>(
    _ issued: borrowing COSEIssuedClaims, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    switch self {
    case .signing(let point):
      try issued.verify(by: point, using: &cryptography)
    case .mac(let key):
      guard case .mac(let tag) = issued.seal else { throw CryptographyFailure() }
      var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hmacSHA256(key: bytes)
      }
      mac.appendCOSEClaimsContext(COSE.macContext, protected: issued.protected, payload: issued.payload)
      let expected = try mac.finishSecret()
      guard expected.withBytes({ constantTimeEqual($0, tag.bytes) }) else { throw CryptographyFailure() }
    }
  }
}

extension TokenOpener {
  /// Decrypts a compact JWE and leaves its contents, a compact JWS, in `plaintext`.
  ///
  /// Source: RFC 7516 §5.2, RFC 7518 §4.6 and §5.3.
  package mutating func decryptJOSE<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>(
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
    trust: inout Trust, using cryptography: inout Crypto, into verified: inout AuthenticatedToken
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

  /// Decodes a JOSE header in `part`.
  private static func readHeader(
    _ encoded: Span<UInt8>, _ part: inout TokenPartBuffer
  ) throws(EncodingFault) -> JOSEHeader {
    part.removeAll()
    try part.append(base64URL: encoded)
    guard part.count <= Limit.headerJOSE.everywhere else { throw .tooLong }
    return try JOSEHeader(part.bytes)
  }
}
