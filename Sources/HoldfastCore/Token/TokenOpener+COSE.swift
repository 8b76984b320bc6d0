extension TokenOpener {
  /// Leaves what a `COSE_Encrypt` holds in `plaintext`.
  ///
  /// Source: RFC 9052 §5.3, RFC 9053 §5.2 and §6.3.1.
  mutating func decryptCOSE<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>(
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

  /// Checks the `COSE_Sign1` or `COSE_Mac0` in `plaintext` and decodes its claims; bare claims, and claims under a MAC, only
  /// where they are accepted.
  ///
  /// Source: RFC 9052 §4.4 and §6.3.
  func verifyCOSE<Crypto: Cryptography & ~Copyable, Trust: IssuerTrust & ~Copyable>(
    trust: inout Trust, acceptsUnsigned: Bool, acceptsMAC: Bool, using cryptography: inout Crypto,
    into verified: inout VerifiedToken
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
  /// Throws unless the claims were signed with this key, or authenticated where it is a MAC key: the key decides which.
  fileprivate borrowing func verify<Crypto: Cryptography & ~Copyable>(
    _ issued: borrowing COSEIssuedClaims, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    switch self {
    case .signing(let point):
      guard case .signature(let signature) = issued.seal else { throw CryptographyFailure() }
      var hash = try cryptography.sha256()
      hash.appendCOSEClaimsContext(COSE.signatureContext, protected: issued.protected, payload: issued.payload)
      try cryptography.p256Verify(key: point, digest: try hash.finish(), signature: signature)
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
