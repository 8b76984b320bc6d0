import COpenSSL
import HoldfastCore

/// HMAC-SHA-256 as two of libcrypto's low-level hashes: no allocation, a third of the time of a kept `EVP_MAC`.
///
/// Source: RFC 2104 §2.
public struct HMACSHA256Stream: StreamingDigest, Sendable {
  public typealias Failure = Never

  private var inner = SHA256Stream()
  private var outer = SHA256Stream()

  private static let blockByteCount = 64

  init(key: Span<UInt8>) throws(CryptographyFailure) {
    var block = Secret<64>()
    try block.withMutableBytes { (block: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      if key.count > Self.blockByteCount {
        var hash = SHA256Stream()
        hash.append(key)
        var head = block._mutatingExtracting(first: 32)
        try hash.finish(into: &head)
        hash.wipe()
      } else {
        for index in key.indices { block[index] = key[index] }
      }
      for index in block.indices { block[index] ^= 0x36 }
      inner.append(block.span)
      for index in block.indices { block[index] ^= 0x36 ^ 0x5c }
      outer.append(block.span)
    }
  }

  public mutating func append(_ bytes: Span<UInt8>) {
    inner.append(bytes)
  }

  /// Ends the MAC and wipes its state; throws unless `output` is 32 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    try inner.finish(into: &output)
    outer.append(output.span)
    try outer.finish(into: &output)
    inner.wipe()
    outer.wipe()
  }
}
