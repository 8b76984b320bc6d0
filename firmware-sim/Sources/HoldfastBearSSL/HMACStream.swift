import CBearSSL
import HoldfastCore

/// HMAC of SHA-1, SHA-256 or SHA-512, piece by piece. Source: RFC 2104.
@safe
public struct HMACStream: StreamingDigest {
  private var context = unsafe br_hmac_context()

  init(_ hash: UnsafePointer<br_hash_class>, key: Span<UInt8>) {
    var keyed = unsafe br_hmac_key_context()
    unsafe key.lend { start, count in unsafe br_hmac_key_init(&keyed, hash, start, count) }
    unsafe br_hmac_init(&context, &keyed, 0)
    unsafe wipeContext(&keyed)
  }

  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.lend { start, count in unsafe br_hmac_update(&context, start, count) }
  }

  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard unsafe output.count == br_hmac_size(&context) else { throw CryptographyFailure() }
    unsafe output.lend { start, _ in _ = unsafe br_hmac_out(&context, start!) }
    unsafe wipeContext(&context)
  }
}
