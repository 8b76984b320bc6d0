import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `KeywrapTest` for AES key wrap, without and with padding. Each key is unwrapped and wrapped again.
///
/// Source: C2SP/wycheproof, `schemas/keywrap_test_schema_v1.json`; RFC 3394, RFC 5649.
struct KeywrapTest: ReplayableGroup {
  private let algorithm: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    algorithm = try frame.member("algorithm").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let key = try test.bytes("key")
    let message = try test.bytes("msg")
    let wrapped = try test.bytes("ct")
    let unwrapped: [UInt8]?
    let again: [UInt8]?
    switch algorithm {
    case "AES-WRAP":
      do throws(CryptographyFailure) {
        let secret = try AESKeyWrap.unwrap(key: key.span, wrapped: wrapped.span)
        unwrapped = [UInt8](secret.bytes)
        again = try AESKeyWrap.wrap(key: key.span, plain: secret.bytes)
      } catch { return .refused("it does not unwrap") }
    case "AES-KWP":
      unwrapped = PaddedKeyWrap.unwrap(wrapped, key: key)
      again = unwrapped.flatMap { PaddedKeyWrap.wrap($0, key: key) }
    default: return .skipped("algorithm \(algorithm)")
    }
    guard let unwrapped else { return .refused("it does not unwrap") }
    guard unwrapped == message else { return .differs("msg") }
    return again == wrapped ? .accepted : .differs("ct")
  }
}

/// Wycheproof's `RsaesOaepDecrypt`, with each size of key and each hash that libcrypto has.
///
/// Source: C2SP/wycheproof, `schemas/rsaes_oaep_decrypt_schema_v1.json`; RFC 8017 §7.1.
struct RsaesOaepDecrypt: ReplayableGroup {
  private let hashName: String
  private let maskHashName: String
  private let key: [UInt8]

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    hashName = try group.member("sha").text()
    let mask = try group.member("mgf")
    guard try mask.text() == "MGF1" else { throw mask.fault(.wrongValue) }
    maskHashName = try group.member("mgfSha").text()
    key = try group.member("privateKeyPkcs8").bytes()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("msg")
    let ciphertext = try test.bytes("ct")
    let label = try test.bytes("label")
    guard let hash = LibcryptoHash(hashName) else { return .skipped("hash \(hashName)") }
    guard let maskHash = LibcryptoHash(maskHashName) else { return .skipped("hash \(maskHashName)") }
    guard let key = LibcryptoRSAKey(pkcs8: key) else { return .refused("the private key") }
    guard let opened = key.decryptOAEP(ciphertext, hash: hash, maskHash: maskHash, label: label) else {
      return .refused("it does not decrypt")
    }
    return opened == message ? .accepted : .differs("msg")
  }
}
