import HoldfastCore
import HoldfastIssuer
import HoldfastOpenSSL

/// Wycheproof's `AeadTest` for AES-GCM with a 12-byte IV and a 16-byte tag, and for the composites of AES-CBC and HMAC. Each message is
/// opened and sealed again.
///
/// Source: C2SP/wycheproof, `schemas/aead_test_schema_v1.json`; RFC 7518 §5.2.
struct AeadTest: ReplayableGroup {
  private let algorithm: String
  private let tagBitCount: UInt64

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    algorithm = try frame.member("algorithm").text()
    tagBitCount = try group.member("tagSize").number()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let key = try test.bytes("key")
    let nonce = try test.bytes("iv")
    let data = try test.bytes("aad")
    let message = try test.bytes("msg")
    let ciphertext = try test.bytes("ct")
    let tag = try test.bytes("tag")
    if let composite = JWEContentEncryption(rawValue: algorithm) {
      return replay(composite, key: key, vector: nonce, data, message, ciphertext, tag)
    }
    guard algorithm == "AES-GCM" else { return .skipped("algorithm \(algorithm)") }
    guard nonce.count == 12 else { return .skipped("IV of \(nonce.count) bytes") }
    guard tagBitCount == 128 else { return .skipped("tag of \(tagBitCount) bits") }
    guard [16, 24, 32].contains(key.count) else { return .skipped("key of \(key.count) bytes") }
    guard let tag = AuthenticationTag(tag.span) else { return .refused("tag of \(tag.count) bytes") }

    var opened = ciphertext
    var sealed = message
    var sealedTag = AuthenticationTag()
    do throws(CryptographyFailure) {
      var bytes = opened.mutableSpan
      try AESGCM.open(key: key.span, nonce: nonce.span, authenticating: data.span, message: &bytes, tag: tag)
    } catch { return .refused("it does not open") }
    guard opened == message else { return .differs("msg") }
    do throws(CryptographyFailure) {
      var bytes = sealed.mutableSpan
      try AESGCM.seal(key: key.span, nonce: nonce.span, authenticating: data.span, message: &bytes, tag: &sealedTag)
    } catch { return .refused("it cannot be sealed") }
    guard sealed == ciphertext else { return .differs("ct") }
    return sealedTag == tag ? .accepted : .differs("tag")
  }

  private func replay(
    _ composite: JWEContentEncryption, key: [UInt8], vector: [UInt8], _ data: [UInt8], _ message: [UInt8],
    _ ciphertext: [UInt8], _ tag: [UInt8]
  ) -> Outcome {
    do throws(CryptographyFailure) {
      let opened = try composite.open(
        ciphertext.span, tag: tag.span, key: key.span, vector: vector.span, authenticating: data.span)
      guard [UInt8](opened.bytes) == message else { return .differs("msg") }
      let sealed = try composite.seal(message.span, key: key.span, vector: vector.span, authenticating: data.span)
      guard sealed.ciphertext == ciphertext else { return .differs("ct") }
      return sealed.tag == tag ? .accepted : .differs("tag")
    } catch { return .refused("it does not open") }
  }
}

/// Wycheproof's `HkdfTest`: extract and expand with each hash that Holdfast's HMAC supports.
///
/// Source: C2SP/wycheproof, `schemas/hkdf_test_schema_v1.json`.
struct HkdfTest: ReplayableGroup {
  private let algorithm: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    algorithm = try frame.member("algorithm").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let inputKey = try test.bytes("ikm")
    let salt = try test.bytes("salt")
    let info = try test.bytes("info")
    let size = try test.node.member("size").number()
    let expected = try test.bytes("okm")
    guard let hash = HMAC(hkdfName: algorithm) else { return .skipped("algorithm \(algorithm)") }
    // HKDF itself refuses a size that is too large; this only bounds the memory.
    guard size <= 1 << 20 else { return .refused("size \(size)") }
    var derived = [UInt8](repeating: 0, count: Int(size))
    do throws(CryptographyFailure) {
      var output = derived.mutableSpan
      try HKDF.derive(hash: hash, inputKey: inputKey.span, salt: salt.span, info: info.span, into: &output)
    } catch { return .refused("size \(size)") }
    if derived == expected { return .accepted }
    // An invalid test either asks for too many bytes and names no output, or names a wrong output.
    return test.result == .invalid && expected.count == derived.count ? .refused("okm differs") : .differs("okm")
  }
}

extension HMAC {
  fileprivate init?(hkdfName name: String) {
    switch name {
    case "HKDF-SHA-1": self = .sha1
    case "HKDF-SHA-256": self = .sha256
    case "HKDF-SHA-384": self = .sha384
    case "HKDF-SHA-512": self = .sha512
    default: return nil
    }
  }
}

/// Wycheproof's `MacTest`: the tag of a message, truncated to the group's `tagSize`, for each HMAC that Holdfast
/// supports.
///
/// Source: C2SP/wycheproof, `schemas/mac_test_schema_v1.json`.
struct MacTest: ReplayableGroup {
  private let algorithm: String
  private let tagBitCount: UInt64

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    algorithm = try frame.member("algorithm").text()
    tagBitCount = try group.member("tagSize").number()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let key = try test.bytes("key")
    let message = try test.bytes("msg")
    let tag = try test.bytes("tag")
    guard let hmac = HMAC(wycheproofName: algorithm) else { return .skipped("algorithm \(algorithm)") }
    guard tagBitCount > 0, tagBitCount.isMultiple(of: 8), tagBitCount / 8 <= hmac.byteCount else {
      return .skipped("tag of \(tagBitCount) bits")
    }
    var expected = [UInt8](repeating: 0, count: Int(tagBitCount / 8))
    guard tag.count == expected.count else { return .refused("tag of \(tag.count) bytes") }
    do throws(CryptographyFailure) {
      var output = expected.mutableSpan
      try hmac.authenticate(message.span, key: key.span, into: &output)
    } catch { return .refused("no tag") }
    return constantTimeEqual(expected.span, tag.span) ? .accepted : .refused("tag differs")
  }
}

extension HMAC {
  fileprivate init?(wycheproofName name: String) {
    switch name {
    case "HMACSHA1": self = .sha1
    case "HMACSHA256": self = .sha256
    case "HMACSHA384": self = .sha384
    case "HMACSHA512": self = .sha512
    default: return nil
    }
  }
}
