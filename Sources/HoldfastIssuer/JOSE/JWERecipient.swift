import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

/// A public point to which a JWE is encrypted by key agreement.
///
/// Source: RFC 7518 §4.6.
struct JWERecipient {
  let curve: NISTCurve
  /// SEC1 uncompressed.
  let point: [UInt8]
  /// `ECDH-ES`, alone or with a key wrap.
  let management: JWEKeyManagement
  let encryption: JWEContentEncryption
  let keyID: String?

  /// Encrypts `plaintext` to the point; random bytes are drawn for the ephemeral key, a wrapped content key, the vector.
  func seal(
    _ plaintext: Span<UInt8>, contentType: String, random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> [UInt8] {
    var ephemeral = try ephemeralKey(on: curve, random: &random)
    var shared = SecretBytes(zeros: curve.coordinateByteCount)
    do throws(CryptographyFailure) {
      var bytes = shared.mutableBytes
      try ephemeral.agree(with: point.span, into: &bytes)
    } catch { throw .cryptography }
    let extra = [("epk", publicJWK(curve: curve, point: ephemeral.publicPoint))]
    let parties = JWEParties()
    let writer = JWEWriter(management: management, encryption: encryption, keyID: keyID, contentType: contentType)
    switch management.method {
    case .agree:
      let key = try parties.deriveKey(
        from: shared.bytes, algorithm: encryption.rawValue, byteCount: encryption.keyByteCount)
      return try writer.write(plaintext, contentKey: key.bytes, wrapped: [], extra: extra, random: &random)
    case .agreeAndWrap(let count):
      let wrappingKey = try parties.deriveKey(
        from: shared.bytes, algorithm: management.rawValue, byteCount: count)
      let contentKey = try writer.freshContentKey(random: &random)
      let wrapped: [UInt8]
      do throws(CryptographyFailure) {
        wrapped = try AESKeyWrap.wrap(key: wrappingKey.bytes, plain: contentKey.bytes)
      } catch { throw .cryptography }
      return try writer.write(plaintext, contentKey: contentKey.bytes, wrapped: wrapped, extra: extra, random: &random)
    default:
      throw .unexpected
    }
  }
}

/// The public JWK of a SEC1 uncompressed point. Source: RFC 7518 §6.2.1.
func publicJWK(curve: NISTCurve, point: [UInt8]) -> JSONValue {
  let coordinates = point.span.extracting(droppingFirst: 1)
  let count = curve.coordinateByteCount
  return .object([
    ("kty", .string("EC")), ("crv", .string(curve.jwkName)),
    ("x", .string(base64URL(coordinates.extracting(first: count)))),
    ("y", .string(base64URL(coordinates.extracting(last: count)))),
  ])
}
