import HoldfastCore
import HoldfastOpenSSL

/// An authenticated encryption of JOSE. Source: RFC 7518 §5.1.
enum ContentEncryption {
  case gcm(keyByteCount: Int)
  /// The key is that of the MAC, and then that of AES, each half of the bytes. Source: RFC 7518 §5.2.
  case cbc(HMAC, keyByteCount: Int)

  init?(_ name: String) {
    switch name {
    case "A128GCM": self = .gcm(keyByteCount: 16)
    case "A192GCM": self = .gcm(keyByteCount: 24)
    case "A256GCM": self = .gcm(keyByteCount: 32)
    case "A128CBC-HS256": self = .cbc(.sha256, keyByteCount: 32)
    case "A192CBC-HS384": self = .cbc(.sha384, keyByteCount: 48)
    case "A256CBC-HS512": self = .cbc(.sha512, keyByteCount: 64)
    default: return nil
    }
  }

  /// The byte count of the key.
  var keyByteCount: Int {
    switch self {
    case .gcm(let keyByteCount), .cbc(_, let keyByteCount): keyByteCount
    }
  }

  /// Returns the plaintext of `ciphertext`.
  ///
  /// - Throws: if the key, the initialization vector or the tag has another length, or the tag or the padding is wrong.
  func open(
    _ ciphertext: [UInt8], key: [UInt8], initializationVector: [UInt8], authenticating data: [UInt8], tag: [UInt8]
  ) throws(Refusal) -> [UInt8] {
    guard key.count == keyByteCount else { throw Refusal(reason: "content key of \(key.count) bytes") }
    switch self {
    case .gcm: return try Self.openGCM(ciphertext, key, initializationVector, data, tag)
    case .cbc(let hmac, _): return try Self.openCBC(ciphertext, key, initializationVector, data, tag, hmac)
    }
  }

  /// Opens AES-GCM with a 12-byte initialization vector and a 16-byte tag.
  static func openGCM(
    _ ciphertext: [UInt8], _ key: [UInt8], _ initializationVector: [UInt8], _ data: [UInt8], _ tag: [UInt8]
  ) throws(Refusal) -> [UInt8] {
    guard initializationVector.count == 12 else { throw Refusal(reason: "iv of \(initializationVector.count) bytes") }
    guard let tag = AuthenticationTag(tag.span) else { throw Refusal(reason: "tag of \(tag.count) bytes") }
    var message = ciphertext
    do throws(CryptographyFailure) {
      var bytes = message.mutableSpan
      try AESGCM.open(
        key: key.span, nonce: initializationVector.span, authenticating: data.span, message: &bytes, tag: tag)
    } catch { throw Refusal(reason: "tag") }
    return message
  }

  private static func openCBC(
    _ ciphertext: [UInt8], _ key: [UInt8], _ initializationVector: [UInt8], _ data: [UInt8], _ tag: [UInt8],
    _ hmac: HMAC
  ) throws(Refusal) -> [UInt8] {
    guard initializationVector.count == 16 else { throw Refusal(reason: "iv of \(initializationVector.count) bytes") }
    guard tag.count == key.count / 2 else { throw Refusal(reason: "tag of \(tag.count) bytes") }
    let (macKey, encryptionKey) = (Array(key[..<(key.count / 2)]), Array(key[(key.count / 2)...]))
    let bitCount = UInt64(data.count) * 8
    let length = (0..<8).map { UInt8(truncatingIfNeeded: bitCount >> (56 - 8 * $0)) }
    let authenticated = data + initializationVector + ciphertext + length
    do throws(CryptographyFailure) {
      try hmac.verify(tag.span, of: authenticated.span, key: macKey.span)
      let plaintext = try AESCBC.decrypt(
        key: encryptionKey.span, initializationVector: initializationVector.span, message: ciphertext.span)
      return [UInt8](plaintext.bytes)
    } catch { throw Refusal(reason: "tag or padding") }
  }
}
