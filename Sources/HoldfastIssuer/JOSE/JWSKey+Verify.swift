import HoldfastCore
import HoldfastOpenSSL

extension JWSKey {
  /// Checks a compact JWS and gives its payload.
  ///
  /// Source: RFC 7515 §5.2. `type` is what `typ` must be; `alg` must be this key's.
  /// Throws `malformed`, `unexpected`, `refused` for header parameters that are never honoured, and one opaque
  /// `cryptography` for a wrong signature. Timing: MACs are compared in constant time.
  public borrowing func verify(
    _ token: Span<UInt8>, type: String, using cryptography: inout OpenSSLCryptography
  ) throws(JOSEFault) -> SecretBytes {
    let parts = try CompactParts(token, count: 3)
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
