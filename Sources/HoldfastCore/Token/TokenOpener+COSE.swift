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

  /// Checks the `COSE_Sign1` in `plaintext` and decodes its claims; bare claims only where they are accepted.
  ///
  /// Source: RFC 9052 §4.4.
  func verifyCOSE<Crypto: Cryptography & ~Copyable, Trust: IssuerTrust & ~Copyable>(
    trust: inout Trust, acceptsUnsigned: Bool, using cryptography: inout Crypto
  ) throws(TokenFault) -> VerifiedToken {
    let signed: COSESignedClaims
    do throws(EncodingFault) {
      if acceptsUnsigned, try CBORReader(plaintext.bytes).nextMajorType() == .map {
        return VerifiedToken(claims: try MeasurementClaims(cbor: plaintext.bytes), verifyingKey: nil)
      }
      signed = try COSESignedClaims(plaintext.bytes)
    } catch { throw TokenFault(error) }
    guard let issuer = trust.trustedIssuer(signed.issuerKeyID) else { throw .untrusted }
    do throws(CryptographyFailure) {
      var hash = try cryptography.sha256()
      hash.appendCOSESignatureContext(protected: signed.protected, payload: signed.payload)
      try cryptography.p256Verify(key: issuer, digest: try hash.finish(), signature: signed.signature)
    } catch { throw .cryptography }
    do throws(EncodingFault) {
      return VerifiedToken(claims: try MeasurementClaims(cbor: signed.payload), verifyingKey: signed.issuerKeyID)
    } catch { throw TokenFault(error) }
  }
}
