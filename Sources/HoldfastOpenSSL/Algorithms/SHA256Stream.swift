import COpenSSL
import HoldfastCore

/// SHA-256 by libcrypto's low-level calls: no allocation, no fetch.
///
/// Source: FIPS 180-4.
@safe
public struct SHA256Stream: BlockHash, Sendable {
  public typealias Failure = Never

  public static var byteCount: Int { 32 }
  public static var blockByteCount: Int { 64 }

  private var state = SHA256_CTX()

  public init() {
    unsafe SHA256_Init(&state)
  }

  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA256_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Ends the hash; throws unless `output` is 32 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA256_Final($0.baseAddress, &state) }
  }

  public mutating func wipe() {
    overwrite(&state)
  }
}
