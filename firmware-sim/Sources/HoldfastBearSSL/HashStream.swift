import CBearSSL
import HoldfastCore

/// SHA-1, SHA-256 or SHA-512, piece by piece. Source: FIPS 180-4.
@safe
public struct HashStream: StreamingDigest {
  private var context = unsafe br_hash_compat_context()

  init(_ hash: UnsafePointer<br_hash_class>) {
    unsafe holdfast_hash_init(&context, hash)
  }

  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.lend { start, count in unsafe holdfast_hash_update(&context, start, count) }
  }

  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard unsafe output.count == holdfast_hash_size(&context) else { throw CryptographyFailure() }
    unsafe output.lend { start, _ in unsafe holdfast_hash_out(&context, start!) }
    unsafe wipeContext(&context)
  }
}
