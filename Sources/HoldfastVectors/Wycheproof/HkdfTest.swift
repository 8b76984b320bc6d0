import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `HkdfTest`: extract and expand with each hash that Holdfast's HMAC has.
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
    // Whether it is too much is for HKDF to say; only what nobody could hold is left out here.
    guard size <= 1 << 20 else { return .refused("size \(size)") }
    var derived = [UInt8](repeating: 0, count: Int(size))
    do throws(CryptographyFailure) {
      var output = derived.mutableSpan
      try HKDF.derive(hash: hash, inputKey: inputKey.span, salt: salt.span, info: info.span, into: &output)
    } catch { return .refused("size \(size)") }
    if derived == expected { return .accepted }
    // An invalid test either asks for too much, and names no output, or names a wrong one.
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
