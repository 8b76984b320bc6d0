import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `MacTest`: the tag of a message, cut to the group's `tagSize`, for each HMAC that Holdfast has.
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
