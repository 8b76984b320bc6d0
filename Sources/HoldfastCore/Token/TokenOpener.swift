/// Opens measurement tokens for one device. Its buffers are its only memory; nothing is allocated.
public struct TokenOpener: ~Copyable {
  /// The longest token, in bytes.
  public static let maximumTokenByteCount = 3072

  /// What a COSE key is derived with.
  var context = ByteBuffer<64>()
  var plaintext = ByteBuffer<3072>()
  /// A decoded part of a JOSE token: a header, then the claims.
  var part = ByteBuffer<2304>()

  public init() {}

  /// Decrypts a token, checks its signature or MAC and decodes its claims.
  ///
  /// - Parameters:
  ///   - token: `COSE_Encrypt` or a compact JWE, at most 3072 bytes.
  ///   - encoding: which of the two; a reference is `malformed`.
  ///   - key: the device's key; `keyID` is its id, which the token must name.
  ///   - trust: whose signatures and MACs count.
  ///   - acceptsUnsigned: whether bare claims (COSE alone) are taken too.
  ///   - acceptsMAC: whether claims under a MAC (COSE alone) are taken too.
  ///   - verified: becomes the token, whose audience and times are not looked at yet; of no use when this throws.
  public mutating func open<
    Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Trust: IssuerTrust & ~Copyable
  >(
    _ token: Span<UInt8>, encoding: TokenEncoding, key: inout Key, keyID: KeyID, trust: inout Trust,
    acceptsUnsigned: Bool, acceptsMAC: Bool, using cryptography: inout Crypto, into verified: inout VerifiedToken
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
