import COpenSSL
import HoldfastCore

/// HMAC as two of libcrypto's low-level hashes: no allocation, a third of the time of a kept `EVP_MAC`.
///
/// Source: RFC 2104 §2.
public struct HMACStream<Hash: BlockHash & Sendable>: StreamingDigest, Sendable {
  public typealias Failure = Never

  private var inner = Hash()
  private var outer = Hash()

  init(key: Span<UInt8>) throws(CryptographyFailure) {
    var block = Secret<128>()
    try block.withMutableBytes { (whole: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      var block = whole._mutatingExtracting(first: Hash.blockByteCount)
      if key.count > Hash.blockByteCount {
        var hash = Hash()
        hash.append(key)
        var head = block._mutatingExtracting(first: Hash.byteCount)
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

  /// Ends the MAC and wipes its state; throws unless `output` is as long as the hash.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    try inner.finish(into: &output)
    outer.append(output.span)
    try outer.finish(into: &output)
    inner.wipe()
    outer.wipe()
  }
}
