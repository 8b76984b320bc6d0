/// Claims that were decrypted with the device's key, and that a trusted issuer signed or authenticated with a key that
/// it shares with the device. If policy accepts unsigned claims, these may be of any origin.
///
/// Only ``TokenOpener`` fills a token; an empty one expired in 1970. Every round checks that the issuer is still
/// trusted, and that the claims apply now.
public struct AuthenticatedToken: ~Copyable, Sendable {
  /// The claims of the token.
  public internal(set) var claims = MeasurementClaims()
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public internal(set) var verifyingKey: KeyID?

  /// Creates an empty token, which has no issuer and has expired.
  public init() {}

  /// Becomes a copy of `other`, for code that remembers tokens.
  public mutating func set(_ other: borrowing AuthenticatedToken) {
    claims.set(other.claims)
    verifyingKey = other.verifyingKey
  }

  /// Returns a second copy.
  public borrowing func copy() -> AuthenticatedToken {
    var other = AuthenticatedToken()
    other.set(self)
    return other
  }
}

/// The reason why a token was not accepted. A peer gets the same status for all of them.
public enum TokenFault: Error {
  /// The token is not deterministic CBOR, strict JSON or a compact serialisation.
  case malformed
  /// The token is well-formed, but not a measurement token.
  case structure
  /// The token's `kid` names another device's key.
  case anotherDevice
  /// The device trusts no key with the issuer's key id, or does not accept this kind of key here.
  case untrusted
  /// A decryption or a check of a signature or MAC failed; opaque on purpose.
  case cryptography

  init(_ fault: EncodingFault) {
    self = fault == .unexpected ? .structure : .malformed
  }
}

/// The encoding of a token in M2.
public enum TokenEncoding: UInt8, Sendable {
  /// A reference: the first 16 bytes of SHA-256 over a token that the device remembers.
  case reference = 0
  /// A `COSE_Encrypt` around a `COSE_Sign1` or a `COSE_Mac0` (RFC 9052).
  case cose = 1
  /// A compact JWE around a compact JWS (RFC 7516, RFC 7515).
  case jose = 2
}

/// Returns the reference under which a token is remembered.
public func tokenReference<Crypto: Cryptography & ~Copyable>(
  _ token: Span<UInt8>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> TokenReference {
  var hash = try cryptography.sha256()
  hash.append(token)
  let digest: Digest = try hash.finish()
  var reference = TokenReference()
  for index in 0..<TokenReference.byteCount { reference[index] = digest[index] }
  return reference
}

/// A key by which a device recognises an issuer's tokens. Only the key's kind decides how a token is checked, never the
/// token.
public enum IssuerKey: ~Copyable, Sendable {
  /// The public half of the issuer's signing key, for ES256.
  case signing(P256Point)
  /// 32 bytes that the issuer shares only with this device, for HMAC 256/256. Anyone who has them can make tokens for
  /// it.
  case mac(Secret<32>)

  /// Whether this is a MAC key.
  package var isMAC: Bool {
    switch self {
    case .signing: false
    case .mac: true
    }
  }

  /// Returns whether both are the same key. The time taken reveals nothing about a MAC key.
  package borrowing func isSame(as other: borrowing IssuerKey) -> Bool {
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

/// The issuer keys that a device trusts.
public protocol IssuerTrust: ~Copyable {
  /// Returns the trusted issuer key whose id is `keyID`; nil if there is none.
  mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey?
}

extension IssuerTrust where Self: ~Copyable {
  /// Returns the trusted public key whose id is `keyID`; nil if there is none, or if it is a MAC key.
  @inline(never)
  package mutating func signingKey(_ keyID: KeyID) -> P256Point? {
    guard case .signing(let point)? = trustedIssuer(keyID) else { return nil }
    return point
  }
}

/// Returns the key id of an issuer's key. For a public key, it is the first 8 bytes of SHA-256 over the point; for a
/// MAC key, it is the first 8 bytes of `SHA-256("holdfast/1 mac kid" ‖ 0x00 ‖ key)`.
///
/// A MAC key is 32 random bytes or looks like them, so its id, which is public, does not help to guess it.
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
