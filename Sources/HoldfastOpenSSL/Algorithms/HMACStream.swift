import HoldfastCore

/// HMAC as two of libcrypto's low-level hashes: no allocation, a third of the time of a kept `EVP_MAC`.
///
/// Source: RFC 2104 §2. Inlinable, so that a caller's code is made for the hash.
public struct HMACStream<Hash: BlockHash & Sendable>: StreamingDigest, Sendable {
  public typealias Failure = Never

  @usableFromInline var inner: Hash
  @usableFromInline var outer: Hash

  @inlinable
  @inline(__always)
  init(key: Span<UInt8>) throws(CryptographyFailure) {
    inner = Hash()
    outer = inner
    var storage = InlineArray<128, UInt8>(repeating: 0x36)
    var whole = storage.mutableSpan
    defer { HoldfastCore.wipe(&whole) }
    var block = whole._mutatingExtracting(first: Hash.blockByteCount)
    if key.count > Hash.blockByteCount {
      var hash = Hash()
      hash.append(key)
      var head = block._mutatingExtracting(first: Hash.byteCount)
      try hash.finish(into: &head)
      hash.wipe()
      for index in head.indices { head[index] ^= 0x36 }
    } else {
      for index in key.indices { block[index] = key[index] ^ 0x36 }
    }
    inner.append(block.span)
    for index in block.indices { block[index] ^= 0x36 ^ 0x5c }
    outer.append(block.span)
  }

  @inlinable
  public mutating func append(_ bytes: Span<UInt8>) {
    inner.append(bytes)
  }

  /// Ends the MAC and wipes its state; throws unless `output` is as long as the hash.
  @inlinable
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    try inner.finish(into: &output)
    outer.append(output.span)
    try outer.finish(into: &output)
    inner.wipe()
    outer.wipe()
  }
}
