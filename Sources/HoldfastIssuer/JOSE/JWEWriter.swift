import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

/// Puts a compact JWE together once its content key is there.
///
/// Source: RFC 7516 §5.1.
struct JWEWriter {
  let management: JWEKeyManagement
  let encryption: JWEContentEncryption
  let keyID: String?
  let contentType: String

  /// A random content key.
  func freshContentKey(random: inout some RandomSource & ~Copyable) throws(JOSEFault) -> SecretBytes {
    var key = SecretBytes(zeros: encryption.keyByteCount)
    do throws(RandomFailure) {
      var bytes = key.mutableBytes
      try random.fill(&bytes)
    } catch { throw .cryptography }
    return key
  }

  /// Encrypts and serialises; `extra` are the header parameters of the key management.
  func write(
    _ plaintext: Span<UInt8>, contentKey: Span<UInt8>, wrapped: [UInt8], extra: [(String, JSONValue)],
    random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> [UInt8] {
    var members: [(String, JSONValue)] = [
      ("alg", .string(management.rawValue)), ("enc", .string(encryption.rawValue)), ("cty", .string(contentType)),
    ]
    if let keyID { members.append(("kid", .string(keyID))) }
    members += extra
    let header = JSONValue.object(members).compact()
    var token: [UInt8] = []
    token.append(asBase64URL: header.span)
    var vector = [UInt8](repeating: 0, count: encryption.vectorByteCount)
    let sealed: (ciphertext: [UInt8], tag: [UInt8])
    do throws(RandomFailure) {
      var bytes = vector.mutableSpan
      try random.fill(&bytes)
    } catch { throw .cryptography }
    do throws(CryptographyFailure) {
      sealed = try encryption.seal(plaintext, key: contentKey, vector: vector.span, authenticating: token.span)
    } catch { throw .cryptography }
    for part in [wrapped, vector, sealed.ciphertext, sealed.tag] {
      token.append(UInt8(ascii: "."))
      token.append(asBase64URL: part.span)
    }
    return token
  }
}
