import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `AeadTest`, for AES-GCM with a 12-byte IV and a 16-byte tag: opened, and sealed again.
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
    guard let tag = FixedBytes<16>(tag.span) else { return .refused("tag of \(tag.count) bytes") }

    var opened = ciphertext
    var sealed = message
    var sealedTag = FixedBytes<16>()
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
