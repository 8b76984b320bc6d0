import HoldfastCore

/// A hash that works block by block, which is what HMAC is built from.
///
/// Source: RFC 2104 §2.
public protocol BlockHash: StreamingDigest {
  /// The bytes of a hash; B of RFC 2104 is ``blockByteCount``, L is this.
  static var byteCount: Int { get }
  /// The bytes of a block, at most 128.
  static var blockByteCount: Int { get }

  init()

  /// Overwrites what was hashed so far.
  mutating func wipe()
}

/// Overwrites what libcrypto keeps. `OPENSSL_cleanse` goes by single words, which is felt in a short HMAC.
func overwrite<State>(_ state: inout State) {
  unsafe withUnsafeMutableBytes(of: &state) {
    var bytes = unsafe $0.bindMemory(to: UInt8.self).mutableSpan
    HoldfastCore.wipe(&bytes)
  }
}
