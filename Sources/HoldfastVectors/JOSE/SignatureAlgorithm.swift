import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A signature or MAC algorithm of JOSE. Source: RFC 7518 §3.1.
enum SignatureAlgorithm {
  case hmac(HMAC)
  case ecdsa(NISTCurve)
  case rsa(LibcryptoRSAKey.Padding)

  /// Returns the algorithm with a name, and the name of its hash; nil for `none` and unknown ones.
  static func named(_ name: String) -> (algorithm: SignatureAlgorithm, hashName: String)? {
    switch name {
    case "HS256": (.hmac(.sha256), "SHA-256")
    case "HS384": (.hmac(.sha384), "SHA-384")
    case "HS512": (.hmac(.sha512), "SHA-512")
    case "ES256": (.ecdsa(.p256), "SHA-256")
    case "ES384": (.ecdsa(.p384), "SHA-384")
    case "ES512": (.ecdsa(.p521), "SHA-512")
    case "RS256": (.rsa(.pkcs1), "SHA-256")
    case "RS384": (.rsa(.pkcs1), "SHA-384")
    case "RS512": (.rsa(.pkcs1), "SHA-512")
    case "PS256": (.rsa(.pss), "SHA-256")
    case "PS384": (.rsa(.pss), "SHA-384")
    case "PS512": (.rsa(.pss), "SHA-512")
    default: nil
    }
  }

  /// The registered algorithms that Holdfast does not have. Source: RFC 8037 §3.1, RFC 8812 §3.2, RFC 9864 §2.
  static let missing = ["EdDSA", "Ed25519", "Ed448", "ES256K"]

  /// The `kty` of its keys. Source: RFC 7518 §6.1.
  var keyType: String {
    switch self {
    case .hmac: "oct"
    case .ecdsa: "EC"
    case .rsa: "RSA"
    }
  }

  /// Throws unless `signature` over `message` was made with `key`, and the key is fit for this algorithm.
  func verify(_ signature: [UInt8], of message: [UInt8], key: JSONValue, hashName: String) throws(Refusal) {
    let parsed = try key.parsedKey()
    switch self {
    case .hmac(let hmac): try Self.verify(signature, message, hmac, parsed)
    case .ecdsa(let curve): try Self.verify(signature, message, curve, parsed, hashName)
    case .rsa(let padding):
      guard parsed.type == .rsa else { throw Refusal(reason: "key of another type") }
      try Self.verify(signature, message, padding, key, hashName)
    }
  }

  private static func verify(
    _ signature: [UInt8], _ message: [UInt8], _ hmac: HMAC, _ key: consuming JWK
  ) throws(Refusal) {
    let secret = try key.secretOctets()
    // Source: RFC 7518 §3.2.
    guard secret.count >= hmac.byteCount else { throw Refusal(reason: "key of \(secret.count) bytes") }
    guard signature.count == hmac.byteCount else { throw Refusal(reason: "MAC of \(signature.count) bytes") }
    do throws(CryptographyFailure) { try hmac.verify(signature.span, of: message.span, key: secret.span) } catch {
      throw Refusal(reason: "MAC")
    }
  }

  private static func verify(
    _ signature: [UInt8], _ message: [UInt8], _ curve: NISTCurve, _ key: borrowing JWK, _ hashName: String
  ) throws(Refusal) {
    guard key.curve == curve else { throw Refusal(reason: "key on another curve") }
    let point: [UInt8]
    do throws(KeyFault) { point = try key.publicPoint() } catch { throw Refusal(reason: "point") }
    guard let hash = LibcryptoHash(hashName), let curve = LibcryptoCurve(curve.wycheproofName),
      PairSignature.verifies(signature, of: message, hash: hash, point: point, on: curve)
    else { throw Refusal(reason: "signature") }
  }

  private static func verify(
    _ signature: [UInt8], _ message: [UInt8], _ padding: LibcryptoRSAKey.Padding, _ key: JSONValue, _ hashName: String
  ) throws(Refusal) {
    guard let modulus = key.number("n"), let exponent = key.number("e"),
      let rsa = LibcryptoRSAKey(modulus: modulus, exponent: exponent), let hash = LibcryptoHash(hashName)
    else { throw Refusal(reason: "RSA key") }
    // Source: RFC 7518 §3.3, FIPS 186-5 §5.1.
    guard rsa.bitCount >= 2048 else { throw Refusal(reason: "RSA key of \(rsa.bitCount) bits") }
    guard exponent.last.map({ $0 & 1 == 1 }) == true, exponent.drop(while: { $0 == 0 }) != [1] else {
      throw Refusal(reason: "RSA exponent")
    }
    guard !hasROCAFingerprint(modulus) else { throw Refusal(reason: "RSA key with the fingerprint of ROCA") }
    guard rsa.verifies(signature, of: message, hash: hash, padding: padding) else { throw Refusal(reason: "signature") }
  }
}

extension NISTCurve {
  /// The name of the curve in Wycheproof.
  var wycheproofName: String {
    switch self {
    case .p256: "secp256r1"
    case .p384: "secp384r1"
    case .p521: "secp521r1"
    }
  }
}

extension JSONValue {
  /// Decodes the member with a name, a big-endian number in base64url; nil if it is absent or malformed.
  fileprivate func number(_ name: String) -> [UInt8]? {
    guard let text = self[name]?.text else { return nil }
    return try? decodePublicBase64URL(text)
  }
}

/// Returns whether a big-endian RSA modulus is a power of 65537 modulo each of these primes, as are all moduli that
/// Infineon's faulty library generated. Of other moduli, fewer than one in a hundred million is.
///
/// Source: CVE-2017-15361; Nemec et al., The Return of Coppersmith's Attack, §2.3.
private func hasROCAFingerprint(_ modulus: [UInt8]) -> Bool {
  [11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157].allSatisfy { prime in
    let remainder = modulus.reduce(0) { ($0 << 8 | Int($1)) % prime }
    var power = 1
    repeat {
      if power == remainder { return true }
      power = power * 65537 % prime
    } while power != 1
    return false
  }
}
