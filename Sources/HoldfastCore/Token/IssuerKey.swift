/// A key by which a device knows an issuer's tokens. Its kind alone decides how a token is checked, never the token.
public enum IssuerKey: ~Copyable, Sendable {
  /// The public half of the issuer's signing key, for ES256.
  case signing(P256Point)
  /// 32 bytes that the issuer shares with this device alone, for HMAC 256/256: who has them can make tokens for it.
  case mac(Secret<32>)

  /// Whether it is a MAC key.
  public var isMAC: Bool {
    switch self {
    case .signing: false
    case .mac: true
    }
  }

  /// Whether both are the same key; the time taken says nothing of a MAC key.
  public borrowing func isSame(as other: borrowing IssuerKey) -> Bool {
    switch self {
    case .signing(let point):
      switch other {
      case .signing(let otherPoint): return point == otherPoint
      case .mac: return false
      }
    case .mac(let key):
      switch other {
      case .signing: return false
      case .mac(let otherKey): return key.withBytes { bytes in otherKey.withBytes { constantTimeEqual(bytes, $0) } }
      }
    }
  }
}

/// The keys whose tokens a device believes.
public protocol IssuerTrust: ~Copyable {
  /// The trusted issuer key whose id is `keyID`; nil when there is none.
  mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey?
}

/// The key id of an issuer's key: of a public key as of any other, of a MAC key the first 8 bytes of
/// `SHA-256("holdfast/1 mac kid" ‖ 0x00 ‖ key)`.
///
/// A MAC key is 32 random bytes or looks like them, so that its id, which is public, does not help to guess it.
public func keyID<Crypto: Cryptography & ~Copyable>(
  of issuer: borrowing IssuerKey, using cryptography: inout Crypto
) throws(CryptographyFailure) -> KeyID {
  switch issuer {
  case .signing(let point):
    return try keyID(of: point, using: &cryptography)
  case .mac(let key):
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 mac kid")
    key.withBytes { hash.append($0) }
    return KeyID(startOf: try hash.finish())
  }
}
