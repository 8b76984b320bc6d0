import COpenSSL
import HoldfastCore

/// SHA-1 by libcrypto's low-level calls: no allocation, no fetch.
///
/// Source: FIPS 180-4.
@safe
package struct SHA1Stream: BlockHash, Sendable {
  package typealias Failure = Never

  package static var byteCount: Int { 20 }
  package static var blockByteCount: Int { 64 }

  private var state = SHA_CTX()

  package init() {
    unsafe SHA1_Init(&state)
  }

  package mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA1_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Ends the hash; throws unless `output` is 20 bytes.
  package mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA1_Final($0.baseAddress, &state) }
  }

  package mutating func wipe() {
    overwrite(&state)
  }
}

/// SHA-256 by libcrypto's low-level calls: no allocation, no fetch.
///
/// Source: FIPS 180-4.
@safe
package struct SHA256Stream: BlockHash, Sendable {
  package typealias Failure = Never

  package static var byteCount: Int { 32 }
  package static var blockByteCount: Int { 64 }

  private var state = SHA256_CTX()

  package init() {
    unsafe SHA256_Init(&state)
  }

  package mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA256_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Ends the hash; throws unless `output` is 32 bytes.
  package mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA256_Final($0.baseAddress, &state) }
  }

  package mutating func wipe() {
    overwrite(&state)
  }
}

/// SHA-512 by libcrypto's low-level calls: no allocation, no fetch.
///
/// Source: FIPS 180-4.
@safe
package struct SHA512Stream: BlockHash, Sendable {
  package typealias Failure = Never

  package static var byteCount: Int { 64 }
  package static var blockByteCount: Int { 128 }

  private var state = SHA512_CTX()

  package init() {
    unsafe SHA512_Init(&state)
  }

  package mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA512_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Ends the hash; throws unless `output` is 64 bytes.
  package mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA512_Final($0.baseAddress, &state) }
  }

  package mutating func wipe() {
    overwrite(&state)
  }
}

/// A hash that works block by block, which is what HMAC is built from.
///
/// Source: RFC 2104 §2.
package protocol BlockHash: StreamingDigest {
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
