import HoldfastCore
import HoldfastOpenSSL

/// What names the two parties of a key agreement, `apu` and `apv`; empty where absent.
///
/// Source: RFC 7518 §4.6.1.
struct JWEParties {
  var producer: [UInt8] = []
  var recipient: [UInt8] = []

  /// Derives a key from a shared secret. Source: RFC 7518 §4.6.2.
  func deriveKey(
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
