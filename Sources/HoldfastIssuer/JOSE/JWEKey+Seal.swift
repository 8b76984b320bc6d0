import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

extension JWEKey {
  /// Encrypts `plaintext` as ``open(_:contentType:)`` opens it, to the public half where there is one.
  ///
  /// Source: RFC 7516 §5.1. Throws `cryptography` when libcrypto or the random source fails.
  public borrowing func seal(
    _ plaintext: Span<UInt8>, contentType: String, random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> [UInt8] {
    let writer = JWEWriter(management: management, encryption: encryption, keyID: keyID, contentType: contentType)
    switch material {
    case .elliptic(let key):
      let recipient = JWERecipient(
        curve: key.curve, point: key.publicPoint, management: management, encryption: encryption, keyID: keyID)
      return try recipient.seal(plaintext, contentType: contentType, random: &random)
    case .rsa(let key):
      guard case .oaep(let hash) = management.method else { throw .unexpected }
      let contentKey = try writer.freshContentKey(random: &random)
      let wrapped: [UInt8]
      do throws(CryptographyFailure) {
        wrapped = try key.encryptOAEP(contentKey.bytes, hash: hash, label: Span())
      } catch { throw .cryptography }
      return try writer.write(plaintext, contentKey: contentKey.bytes, wrapped: wrapped, extra: [], random: &random)
    case .octets(let key):
      if case .direct = management.method {
        return try writer.write(plaintext, contentKey: key.bytes, wrapped: [], extra: [], random: &random)
      }
      let contentKey = try writer.freshContentKey(random: &random)
      let (wrapped, extra) = try wrap(contentKey.bytes, with: key.bytes, random: &random)
      return try writer.write(plaintext, contentKey: contentKey.bytes, wrapped: wrapped, extra: extra, random: &random)
    }
  }

  /// Source: RFC 7518 §4.4 and §4.7.
  private borrowing func wrap(
    _ contentKey: Span<UInt8>, with key: Span<UInt8>, random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> ([UInt8], [(String, JSONValue)]) {
    guard case .gcmWrap = management.method else {
      do throws(CryptographyFailure) {
        return (try AESKeyWrap.wrap(key: key, plain: contentKey), [])
      } catch { throw .cryptography }
    }
    var nonce = FixedBytes<12>()
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .cryptography }
    var wrapped = [UInt8](copying: contentKey)
    var tag = FixedBytes<16>()
    do throws(CryptographyFailure) {
      var bytes = wrapped.mutableSpan
      try AESGCM.seal(key: key, nonce: nonce.bytes, authenticating: Span(), message: &bytes, tag: &tag)
    } catch { throw .cryptography }
    return (wrapped, [("iv", .string(base64URL(nonce.bytes))), ("tag", .string(base64URL(tag.bytes)))])
  }
}
