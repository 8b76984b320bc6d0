import COpenSSL
import HoldfastCore

/// SHA-512 by libcrypto's low-level calls: no allocation, no fetch.
///
/// Source: FIPS 180-4.
@safe
public struct SHA512Stream: BlockHash, Sendable {
  public typealias Failure = Never

  public static var byteCount: Int { 64 }
  public static var blockByteCount: Int { 128 }

  private var state = SHA512_CTX()

  public init() {
    unsafe SHA512_Init(&state)
  }

  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA512_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Ends the hash; throws unless `output` is 64 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA512_Final($0.baseAddress, &state) }
  }

  public mutating func wipe() {
    overwrite(&state)
  }
}
