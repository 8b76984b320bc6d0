import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A recipient of a message, and the way in which it gets the key of the content. Source: RFC 9052 §5.1, RFC 9053 §6.
struct COSERecipient {
  private let protected: [UInt8]
  let headers: COSEHeaders
  private let ciphertext: [UInt8]

  /// The names of the algorithms in examples.
  static let algorithmNames: Set<String> = [
    "direct", "A128KW", "A192KW", "A256KW", "ECDH-ES", "ECDH-ES-512", "ECDH-ES-A128KW", "ECDH-ES-A192KW",
    "ECDH-ES-A256KW", "HKDF-HMAC-SHA-256", "HKDF-HMAC-SHA-512",
  ]

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 3)
    (protected, headers) = try COSEHeaders.read(&reader)
    ciphertext = [UInt8](try reader.byteString())
  }

  /// Returns the key for the content from the recipient's key.
  func contentKey(for content: COSEAlgorithm, key: JSONValue) throws(Refusal) -> [UInt8] {
    switch headers.algorithm {
    case -6:
      guard protected.isEmpty, ciphertext.isEmpty else { throw Refusal(reason: "direct") }
      return try key.parsedKey().secretOctets()
    case -3: return try unwrap(with: secret(key, byteCount: 16))
    case -4: return try unwrap(with: secret(key, byteCount: 24))
    case -5: return try unwrap(with: secret(key, byteCount: 32))
    case -10: return try derive(.sha256, from: key.parsedKey().secretOctets(), for: content)
    case -11: return try derive(.sha512, from: key.parsedKey().secretOctets(), for: content)
    case -25: return try derive(.sha256, from: agree(key), for: content)
    case -26: return try derive(.sha512, from: agree(key), for: content)
    case -29: return try unwrap(with: derive(.sha256, from: agree(key), -3, byteCount: 16))
    case -30: return try unwrap(with: derive(.sha256, from: agree(key), -4, byteCount: 24))
    case -31: return try unwrap(with: derive(.sha256, from: agree(key), -5, byteCount: 32))
    default: throw Refusal(reason: "alg of the recipient")
    }
  }

  private func secret(_ key: JSONValue, byteCount: Int) throws(Refusal) -> [UInt8] {
    let secret = try key.parsedKey().secretOctets()
    guard protected.isEmpty, secret.count == byteCount else { throw Refusal(reason: "key of \(secret.count) bytes") }
    return secret
  }

  private func unwrap(with key: [UInt8]) throws(Refusal) -> [UInt8] {
    do throws(CryptographyFailure) {
      let secret = try AESKeyWrap.unwrap(key: key.span, wrapped: ciphertext.span)
      return [UInt8](secret.bytes)
    } catch { throw Refusal(reason: "key wrap") }
  }

  /// Returns the x coordinate that the recipient's key and the ephemeral key have in common.
  private func agree(_ key: JSONValue) throws(Refusal) -> [UInt8] {
    let curves: [Int64: NISTCurve] = [1: .p256, 2: .p384, 3: .p521]
    guard let ephemeral = headers.ephemeralKey, let curve = curves[ephemeral.curve] else {
      throw Refusal(reason: "ephemeral key")
    }
    var own: ECPrivateKey
    do throws(KeyFault) { own = try JWK.parse(key.compact().span).ellipticPrivateKey() } catch {
      throw Refusal(reason: "key")
    }
    guard own.curve == curve else { throw Refusal(reason: "key on another curve") }
    let point = [4] + ephemeral.x + ephemeral.y
    var shared = [UInt8](repeating: 0, count: curve.coordinateByteCount)
    do throws(CryptographyFailure) {
      var output = shared.mutableSpan
      try own.agree(with: point.span, into: &output)
    } catch { throw Refusal(reason: "no shared secret") }
    return shared
  }

  private func derive(_ hash: HMAC, from secret: [UInt8], for content: COSEAlgorithm) throws(Refusal) -> [UInt8] {
    guard ciphertext.isEmpty else { throw Refusal(reason: "ciphertext of the recipient") }
    return try derive(hash, from: secret, content.number, byteCount: content.keyByteCount)
  }

  /// Derives a key for an algorithm, in the context that the headers give. Source: RFC 9053 §5.1 and §5.2.
  private func derive(
    _ hash: HMAC, from secret: [UInt8], _ algorithm: Int64, byteCount: Int
  ) throws(Refusal) -> [UInt8] {
    var info: [UInt8] = []
    info.appendCBOR(array: 4)
    info.appendCBOR(integer: algorithm)
    for labels in [[-21, -22, -23], [-24, -25, -26]] as [[Int64]] {
      info.appendCBOR(array: 3)
      for label in labels {
        if let value = headers.parties[label] { info.appendCBOR(bytes: value.span) } else { info.appendCBORNull() }
      }
    }
    info.appendCBOR(array: 2)
    info.appendCBOR(unsigned: UInt64(8 * byteCount))
    info.appendCBOR(bytes: protected.span)
    var derived = [UInt8](repeating: 0, count: byteCount)
    do throws(CryptographyFailure) {
      var output = derived.mutableSpan
      try HKDF.derive(hash: hash, inputKey: secret.span, salt: headers.salt.span, info: info.span, into: &output)
    } catch { throw Refusal(reason: "HKDF") }
    return derived
  }
}
