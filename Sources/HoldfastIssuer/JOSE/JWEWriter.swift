import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A writer that assembles a compact JWE from a content key and a plaintext.
///
/// Source: RFC 7516 §5.1.
struct JWEWriter {
  let management: JWEKeyManagement
  let encryption: JWEContentEncryption
  let keyID: String?
  let contentType: String

  /// Generates a random content key.
  func freshContentKey(random: inout some RandomSource & ~Copyable) throws(JOSEFault) -> SecretBytes {
    var key = SecretBytes(zeros: encryption.keyByteCount)
    do throws(RandomFailure) {
      var bytes = key.mutableBytes
      try random.fill(&bytes)
    } catch { throw .cryptography }
    return key
  }

  /// Encrypts and serialises. `extra` holds the header parameters of the key management.
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

/// The public point of a recipient, to which a JWE is encrypted by key agreement.
///
/// Source: RFC 7518 §4.6.
struct JWERecipient {
  let curve: NISTCurve
  /// The SEC1 uncompressed point.
  let point: [UInt8]
  /// The algorithm: `ECDH-ES`, with or without a key wrap.
  let management: JWEKeyManagement
  let encryption: JWEContentEncryption
  let keyID: String?

  /// Encrypts `plaintext` to the point. Random bytes are drawn for the ephemeral key, a wrapped content key and the
  /// vector, in this order.
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

/// The names of the two parties of a key agreement, `apu` and `apv`; empty if absent.
///
/// Source: RFC 7518 §4.6.1.
package struct JWEParties {
  package var producer: [UInt8] = []
  package var recipient: [UInt8] = []

  package init(producer: [UInt8] = [], recipient: [UInt8] = []) {
    (self.producer, self.recipient) = (producer, recipient)
  }

  /// Derives a key from a shared secret. Source: RFC 7518 §4.6.2.
  package func deriveKey(
    from shared: Span<UInt8>, algorithm: String, byteCount: Int
  ) throws(JOSEFault) -> SecretBytes {
    var otherInfo: [UInt8] = []
    for part in [Array(algorithm.utf8), producer, recipient] {
      otherInfo.append(bigEndian: UInt32(part.count))
      otherInfo.append(part.span)
    }
    otherInfo.append(bigEndian: UInt32(byteCount * 8))
    var key = SecretBytes(zeros: byteCount)
    do throws(CryptographyFailure) {
      var bytes = key.mutableBytes
      try ConcatenationKDF.derive(secret: shared, otherInfo: otherInfo.span, into: &bytes)
    } catch { throw .cryptography }
    return key
  }
}
