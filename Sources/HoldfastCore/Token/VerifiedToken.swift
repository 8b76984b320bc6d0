/// Claims that were decrypted with the device's key and, unless policy accepts unsigned ones, signed by a trusted issuer or
/// authenticated with the key that the device shares with one.
///
/// Only ``TokenOpener`` fills one; an empty one expired in 1970. That its issuer is still trusted, and that the claims apply now, is looked at in every round.
public struct VerifiedToken: ~Copyable, Sendable {
  public internal(set) var claims = MeasurementClaims()
  /// The key that signed or authenticated it; nil for an unsigned token.
  public internal(set) var verifyingKey: KeyID?

  /// Room for a token: of no issuer, and expired.
  public init() {}

  /// Becomes a second copy, for whoever remembers tokens.
  public mutating func set(_ other: borrowing VerifiedToken) {
    claims.set(other.claims)
    verifyingKey = other.verifyingKey
  }

  /// A second copy.
  public borrowing func copy() -> VerifiedToken {
    var other = VerifiedToken()
    other.set(self)
    return other
  }
}

/// Why a token was not believed. To a peer it is one status for all of them.
public enum TokenFault: Error {
  /// Not deterministic CBOR, strict JSON or a compact serialisation.
  case malformed
  /// Well-formed, but not a measurement token.
  case structure
  /// Its `kid` is another device's.
  case anotherDevice
  /// Its issuer is not trusted, or there is none.
  case untrusted
  /// Something did not decrypt or verify; opaque on purpose.
  case cryptography

  init(_ fault: EncodingFault) {
    self = fault == .unexpected ? .structure : .malformed
  }
}

/// How a token is written in M2.
public enum TokenEncoding: UInt8, Sendable {
  /// The first 16 bytes of SHA-256 over a token that the device remembers.
  case reference = 0
  /// `COSE_Encrypt` around `COSE_Sign1` or `COSE_Mac0` (RFC 9052).
  case cose = 1
  /// Compact JWE around compact JWS (RFC 7516, RFC 7515).
  case jose = 2
}

/// The first 16 bytes of SHA-256 over a whole token.
public typealias TokenReference = FixedBytes<16>

/// The reference under which a token is remembered.
public func tokenReference<Crypto: Cryptography & ~Copyable>(
  _ token: Span<UInt8>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> TokenReference {
  var hash = try cryptography.sha256()
  hash.append(token)
  let digest = try hash.finish()
  var reference = TokenReference()
  for index in 0..<TokenReference.byteCount { reference[index] = digest[index] }
  return reference
}

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
