import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The text of a compact JWS, at most 3072 bytes, which may be secret.
package typealias JWSText = TokenBuffer

/// A JWS key with its algorithm. The algorithm is configured with the key and never taken from a header.
///
/// Source: RFC 7515; RFC 8725 §3.1. Only one thread at a time may use it.
package enum JWSKey: ~Copyable {
  /// HMAC-SHA-256 with a secret of at least 32 bytes. Source: RFC 7518 §3.2.
  case hs256(SecretBytes)
  /// ECDSA P-256 with SHA-256, for signing and verifying. Source: RFC 7518 §3.4.
  case es256(P256PrivateKey)
  /// The public half of an ES256 key, which only verifies.
  case es256Public(P256Point)

  /// The name of the algorithm.
  var algorithm: String {
    switch self {
    case .hs256: "HS256"
    case .es256: "ES256"
    case .es256Public: "ES256"
    }
  }

  /// Signs `payload` under a header of `alg`, `typ` and, with ES256, `kid`.
  ///
  /// - Throws: `unexpected` for a public key, `malformed` for a payload that is too long, `cryptography` if libcrypto
  ///   fails.
  package mutating func sign(
    _ payload: Span<UInt8>, type: String, using cryptography: inout OpenSSLCryptography
  ) throws(JOSEFault) -> JWSText {
    switch consume self {
    case .hs256(let secret):
      self = .hs256(secret)
    case .es256(var key):
      var text = JWSText()
      do throws(JOSEFault) {
        text = try signES256(payload, type: type, key: &key, using: &cryptography)
      } catch {
        self = .es256(key)
        throw error
      }
      self = .es256(key)
      return text
    case .es256Public(let point):
      self = .es256Public(point)
    }
    return try signHS256(payload, type: type)
  }

  private borrowing func signHS256(_ payload: Span<UInt8>, type: String) throws(JOSEFault) -> JWSText {
    switch self {
    case .hs256(let secret) where secret.count >= 32:
      var text = try jwsSigningInput([("alg", .string("HS256")), ("typ", .string(type))], payload)
      var code = FixedBytes<32>()
      do throws(CryptographyFailure) {
        var bytes = code.mutableBytes
        try HMAC.sha256.authenticate(text.bytes, key: secret.bytes, into: &bytes)
      } catch { throw .cryptography }
      try text.finishJWS(signature: code.bytes)
      return text
    default:
      throw .unexpected
    }
  }
}

/// Signs `payload` with ES256 under a header of `alg`, `typ` and `kid`. Source: RFC 7518 §3.4.
func signES256(
  _ payload: Span<UInt8>, type: String, key: inout some SigningKey & ~Copyable,
  using cryptography: inout OpenSSLCryptography
) throws(JOSEFault) -> JWSText {
  let id: KeyID
  do throws(CryptographyFailure) {
    id = try keyID(of: key.publicPoint, using: &cryptography)
  } catch { throw .cryptography }
  var text = try jwsSigningInput(
    [("alg", .string("ES256")), ("kid", .string(base64URL(id.bytes))), ("typ", .string(type))], payload)
  let signature: FixedBytes<64>
  do throws(CryptographyFailure) {
    var hash = cryptography.sha256()
    hash.append(text.bytes)
    signature = try key.sign(hash.finish())
  } catch { throw .cryptography }
  try text.finishJWS(signature: signature.bytes)
  return text
}

private func jwsSigningInput(
  _ header: [(String, JSONValue)], _ payload: Span<UInt8>
) throws(JOSEFault) -> JWSText {
  let header = JSONValue.object(header).compact()
  var text = JWSText()
  do throws(EncodingFault) {
    try text.append(asBase64URL: header.span)
    try text.append(UInt8(ascii: "."))
    try text.append(asBase64URL: payload)
  } catch { throw .malformed }
  return text
}

extension ByteBuffer {
  fileprivate mutating func finishJWS(signature: Span<UInt8>) throws(JOSEFault) {
    do throws(EncodingFault) {
      try append(UInt8(ascii: "."))
      try append(asBase64URL: signature)
    } catch { throw .malformed }
  }
}

extension JWSKey {
  /// Verifies a compact JWS and returns its payload.
  ///
  /// Source: RFC 7515 §5.2. `type` is the required value of `typ`; `alg` must be the algorithm of this key. Timing:
  /// MACs are compared in constant time.
  ///
  /// - Throws: `malformed`, `unexpected`, `refused` for header parameters that are never supported, and an opaque
  ///   `cryptography` for a wrong signature.
  package borrowing func verify(
    _ token: Span<UInt8>, type: String, using cryptography: inout OpenSSLCryptography
  ) throws(JOSEFault) -> SecretBytes {
    let parts: CompactJOSE<3> = try splitCompact(token)
    let header = try HeaderParameters(parts[0])
    try header.require("alg", algorithm)
    try header.require("typ", type)
    let payload = try decodePart(parts[1])
    let signature = try decodePart(parts[2])
    switch self {
    case .hs256(let secret):
      guard secret.count >= 32, signature.count == 32 else { throw .unexpected }
      do throws(CryptographyFailure) {
        try HMAC.sha256.verify(signature.bytes, of: parts.signingInput, key: secret.bytes)
      } catch { throw .cryptography }
    case .es256(let key):
      try verifyES256(parts.signingInput, signature.bytes, key.publicPoint, header, using: &cryptography)
    case .es256Public(let point):
      try verifyES256(parts.signingInput, signature.bytes, point, header, using: &cryptography)
    }
    return payload
  }
}

private func verifyES256(
  _ input: Span<UInt8>, _ signature: Span<UInt8>, _ point: P256Point, _ header: HeaderParameters,
  using cryptography: inout OpenSSLCryptography
) throws(JOSEFault) {
  guard let signature = FixedBytes<64>(signature) else { throw .unexpected }
  let id: KeyID
  do throws(CryptographyFailure) {
    id = try keyID(of: point, using: &cryptography)
  } catch { throw .cryptography }
  try header.permit("kid", base64URL(id.bytes))
  do throws(CryptographyFailure) {
    var hash = cryptography.sha256()
    hash.append(input)
    try cryptography.p256Verify(key: point, digest: hash.finish(), signature: signature)
  } catch { throw .cryptography }
}
