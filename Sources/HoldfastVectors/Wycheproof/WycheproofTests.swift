import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `AeadTest` for AES-GCM with a 12-byte IV and a 16-byte tag. Each message is opened and sealed again.
///
/// Source: C2SP/wycheproof, `schemas/aead_test_schema_v1.json`.
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
}

/// Wycheproof's `EcdhEcpointTest`: the x coordinate of a private key times a SEC1 point, on each curve that Holdfast
/// supports.
///
/// Source: C2SP/wycheproof, `schemas/ecdh_ecpoint_test_schema_v1.json`.
struct EcdhEcpointTest: ReplayableGroup {
  private let curve: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    curve = try group.member("curve").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let point = try test.bytes("public")
    let scalar = try test.bytes("private").drop { $0 == 0 }
    let expected = try test.bytes("shared")
    guard let curve = NISTCurve(wycheproofName: curve) else { return .skipped("curve \(curve)") }
    if test.result == .valid, isCompressed(point, on: curve) { return .skipped("compressed point") }
    let padding = curve.coordinateByteCount - scalar.count
    guard padding >= 0 else { return .refused("private key of \(scalar.count) bytes") }
    let padded = [UInt8](repeating: 0, count: padding) + scalar
    var shared = [UInt8](repeating: 0, count: curve.coordinateByteCount)
    do throws(CryptographyFailure) {
      var key = try ECPrivateKey(curve: curve, scalar: padded.span)
      var output = shared.mutableSpan
      try key.agree(with: point.span, into: &output)
    } catch { return .refused("no shared secret") }
    return shared == expected ? .accepted : .differs("shared")
  }

  /// Returns whether a point is in the compressed form, which Holdfast never accepts. Source: SEC 1 §2.3.3.
  private func isCompressed(_ point: [UInt8], on curve: NISTCurve) -> Bool {
    point.count == 1 + curve.coordinateByteCount && (point[0] == 2 || point[0] == 3)
  }
}

extension NISTCurve {
  fileprivate init?(wycheproofName name: String) {
    switch name {
    case "secp256r1": self = .p256
    case "secp384r1": self = .p384
    case "secp521r1": self = .p521
    default: return nil
    }
  }
}

/// Wycheproof's `EcdsaP1363Verify`, for P-256 with SHA-256: a signature r ‖ s over a message.
///
/// Source: C2SP/wycheproof, `schemas/ecdsa_p1363_verify_schema_v1.json`; IEEE P1363 for the signature.
struct EcdsaP1363Verify: ReplayableGroup {
  private let curve: String
  private let hash: String
  private let point: [UInt8]

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    // Older Wycheproof files name the member `key`.
    let hasOldName = group.value["publicKey"] == nil && group.value["key"] != nil
    let key = try group.member(hasOldName ? "key" : "publicKey")
    curve = try key.member("curve").text()
    point = try key.member("uncompressed").bytes()
    hash = try group.member("sha").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("msg")
    let signature = try test.bytes("sig")
    guard curve == "secp256r1" else { return .skipped("curve \(curve)") }
    guard hash == "SHA-256" else { return .skipped("hash \(hash)") }
    guard let point = P256Point(point.span) else { return .refused("public key of \(point.count) bytes") }
    guard let signature = FixedBytes<64>(signature.span) else {
      return .refused("signature of \(signature.count) bytes")
    }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      var digest = cryptography.sha256()
      digest.append(message.span)
      try cryptography.p256Verify(key: point, digest: try digest.finish(), signature: signature)
      return .accepted
    } catch { return .refused("it does not verify") }
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
