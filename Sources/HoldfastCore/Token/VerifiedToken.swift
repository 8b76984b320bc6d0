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
