import COpenSSL
import HoldfastCore

/// SHA-1 through libcrypto's low-level functions, without allocation or algorithm fetch.
///
/// Source: FIPS 180-4.
@safe
public struct SHA1Stream: BlockHash, Sendable {
  /// The error of `append`, which cannot fail.
  public typealias Failure = Never

  /// The byte count of a hash: 20.
  public static var byteCount: Int { 20 }
  /// The byte count of a block: 64.
  public static var blockByteCount: Int { 64 }

  private var state = SHA_CTX()

  /// Begins a hash.
  public init() {
    unsafe SHA1_Init(&state)
  }

  /// Appends `bytes` to the input.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA1_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Writes the hash; throws unless `output` has 20 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA1_Final($0.baseAddress, &state) }
  }

  /// Overwrites the internal state.
  public mutating func wipe() {
    overwrite(&state)
  }
}

/// SHA-256 through libcrypto's low-level functions, without allocation or algorithm fetch.
///
/// Source: FIPS 180-4.
@safe
public struct SHA256Stream: BlockHash, Sendable {
  /// The error of `append`, which cannot fail.
  public typealias Failure = Never

  /// The byte count of a hash: 32.
  public static var byteCount: Int { 32 }
  /// The byte count of a block: 64.
  public static var blockByteCount: Int { 64 }

  private var state = SHA256_CTX()

  /// Begins a hash.
  public init() {
    unsafe SHA256_Init(&state)
  }

  /// Appends `bytes` to the input.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA256_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Writes the hash; throws unless `output` has 32 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA256_Final($0.baseAddress, &state) }
  }

  /// Overwrites the internal state.
  public mutating func wipe() {
    overwrite(&state)
  }
}

/// SHA-512 through libcrypto's low-level functions, without allocation or algorithm fetch.
///
/// Source: FIPS 180-4.
@safe
public struct SHA512Stream: BlockHash, Sendable {
  /// The error of `append`, which cannot fail.
  public typealias Failure = Never

  /// The byte count of a hash: 64.
  public static var byteCount: Int { 64 }
  /// The byte count of a block: 128.
  public static var blockByteCount: Int { 128 }

  private var state = SHA512_CTX()

  /// Begins a hash.
  public init() {
    unsafe SHA512_Init(&state)
  }

  /// Appends `bytes` to the input.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA512_Update(&state, $0.baseAddress, $0.count) }
  }

  /// Writes the hash; throws unless `output` has 64 bytes.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == Self.byteCount else { throw CryptographyFailure() }
    unsafe output.withUnsafeMutableBufferPointer { _ = unsafe SHA512_Final($0.baseAddress, &state) }
  }

  /// Overwrites the internal state.
  public mutating func wipe() {
    overwrite(&state)
  }
}

/// A hash that works in blocks, as HMAC requires.
///
/// Source: RFC 2104 §2.
public protocol BlockHash: StreamingDigest {
  /// The byte count of a hash: L in RFC 2104.
  static var byteCount: Int { get }
  /// The byte count of a block, at most 128: B in RFC 2104.
  static var blockByteCount: Int { get }

  /// Begins a hash.
  init()

  /// Overwrites the internal state.
  mutating func wipe()
}

/// Overwrites libcrypto's state. `OPENSSL_cleanse` writes single words, which slows a short HMAC noticeably.
func overwrite<State>(_ state: inout State) {
  unsafe withUnsafeMutableBytes(of: &state) {
    var bytes = unsafe $0.bindMemory(to: UInt8.self).mutableSpan
    HoldfastCore.wipe(&bytes)
  }
}
