import CBearSSL
import HoldfastCore

/// An implementation of Holdfast's cryptography by BearSSL. It takes constant time over secrets and uses no heap.
public struct BearSSLCryptography: Cryptography {
  /// Makes the implementation, which has no state.
  public init() {}

  /// Begins a SHA-1 hash. Source: FIPS 180-4.
  public mutating func sha1() -> HashStream { unsafe HashStream(holdfast_sha1()) }
  /// Begins a SHA-256 hash. Source: FIPS 180-4.
  public mutating func sha256() -> HashStream { unsafe HashStream(holdfast_sha256()) }
  /// Begins a SHA-512 hash. Source: FIPS 180-4.
  public mutating func sha512() -> HashStream { unsafe HashStream(holdfast_sha512()) }

  /// Begins an HMAC-SHA-1 under `key`, of any length. Source: RFC 2104.
  public mutating func hmacSHA1(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha1(), key: key) }
  /// Begins an HMAC-SHA-256 under `key`, of any length. Source: RFC 2104.
  public mutating func hmacSHA256(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha256(), key: key) }
  /// Begins an HMAC-SHA-512 under `key`, of any length. Source: RFC 2104.
  public mutating func hmacSHA512(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha512(), key: key) }

  /// Derives `output` with HKDF-SHA-256. Source: RFC 5869.
  ///
  /// - Throws: `CryptographyFailure` for more than 255 blocks of output (8,160 bytes).
  public mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    // RFC 5869 §2.3 allows at most 255 blocks.
    guard output.count <= 255 * 32 else { throw CryptographyFailure() }
    unsafe inputKey.lend { inputKey, inputKeyCount in
      unsafe salt.lend { salt, saltCount in
        unsafe info.lend { info, infoCount in
          unsafe output.lend { output, count in
            unsafe holdfast_hkdf(inputKey, inputKeyCount, salt, saltCount, info, infoCount, output, count)
          }
        }
      }
    }
  }

  /// Encrypts `message` in place with AES-256-GCM and sets `tag`. Source: NIST SP 800-38D.
  ///
  /// - Throws: `CryptographyFailure` unless `nonce` has 12 bytes.
  public mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure) {
    guard nonce.count == 12 else { throw CryptographyFailure() }
    var tagBytes = tag.mutableBytes
    unsafe key.lend { key in
      unsafe nonce.lend { nonce, _ in
        unsafe data.lend { data, dataCount in
          unsafe message.lend { message, count in
            unsafe tagBytes.lend { tag, _ in
              unsafe holdfast_gcm_seal(key, nonce!, data, dataCount, message, count, tag!)
            }
          }
        }
      }
    }
  }

  /// Decrypts `message` in place with AES-256-GCM. Source: NIST SP 800-38D.
  ///
  /// - Throws: `CryptographyFailure` unless `nonce` has 12 bytes and `tag` is right.
  public mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    guard nonce.count == 12 else { throw CryptographyFailure() }
    let isGenuine = unsafe key.lend { key in
      unsafe nonce.lend { nonce, _ in
        unsafe data.lend { data, dataCount in
          unsafe message.lend { message, count in
            unsafe tag.bytes.lend { tag, _ in
              unsafe holdfast_gcm_open(key, nonce!, data, dataCount, message, count, tag!)
            }
          }
        }
      }
    }
    guard isGenuine == 1 else { throw CryptographyFailure() }
  }

  /// Unwraps a 32-byte key. `wrapped` has 40 bytes. Source: RFC 3394.
  ///
  /// - Throws: `CryptographyFailure` for another length, or if the integrity check fails.
  public mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure) {
    guard wrapped.count == 40 else { throw CryptographyFailure() }
    let isGenuine = unsafe wrappingKey.lend { wrappingKey in
      unsafe wrapped.lend { wrapped, _ in
        unsafe key.lendMutable { key in unsafe holdfast_key_unwrap(wrappingKey, wrapped!, key) }
      }
    }
    guard isGenuine == 1 else { throw CryptographyFailure() }
  }
}

extension BearSSLCryptography {
  /// Computes the public point of `scalar`, 32 bytes, big-endian.
  ///
  /// - Throws: `CryptographyFailure` if `scalar` is 0 or not below the order.
  public mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    var point = P256Point()
    var bytes = point.mutableBytes
    let isValid = unsafe scalar.lend { scalar in
      unsafe bytes.lend { point, _ in unsafe holdfast_p256_public_point(scalar, point!) }
    }
    guard isValid == 1 else { throw CryptographyFailure() }
    return point
  }

  /// Computes the shared secret of `scalar` and `peer`: the x coordinate, 32 bytes, big-endian.
  ///
  /// - Throws: `CryptographyFailure` if `scalar` or `peer` is not valid.
  public mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure) {
    let isValid = unsafe scalar.lend { scalar in
      unsafe peer.bytes.lend { peer, _ in
        unsafe shared.lendMutable { shared in unsafe holdfast_p256_agree(scalar, peer!, shared) }
      }
    }
    guard isValid == 1 else { throw CryptographyFailure() }
  }

  /// Verifies an ECDSA signature, `r` and `s` of 32 bytes each, over a SHA-256 digest.
  ///
  /// - Throws: `CryptographyFailure` if the signature is wrong or `key` is not valid.
  public mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure) {
    let isValid = unsafe key.bytes.lend { key, _ in
      unsafe digest.bytes.lend { digest, _ in
        unsafe signature.bytes.lend { signature, _ in unsafe holdfast_p256_verify(key!, digest!, signature!) }
      }
    }
    guard isValid == 1 else { throw CryptographyFailure() }
  }
}

/// An HMAC with SHA-1, SHA-256 or SHA-512 of a message in pieces. Source: RFC 2104.
@safe
public struct HMACStream: StreamingDigest {
  private var context = unsafe br_hmac_context()

  // Each call of it would otherwise have a copy.
  @inline(never)
  init(_ hash: UnsafePointer<br_hash_class>, key: Span<UInt8>) {
    var keyed = unsafe br_hmac_key_context()
    unsafe key.lend { start, count in unsafe br_hmac_key_init(&keyed, hash, start, count) }
    unsafe br_hmac_init(&context, &keyed, 0)
    unsafe wipeContext(&keyed)
  }

  /// Appends a piece of the message.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.lend { start, count in unsafe br_hmac_update(&context, start, count) }
  }

  /// Writes the MAC and wipes the state. Call it once, as the last operation.
  ///
  /// - Throws: `CryptographyFailure` unless `output` has exactly the MAC's length.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard unsafe output.count == br_hmac_size(&context) else { throw CryptographyFailure() }
    unsafe output.lend { start, _ in _ = unsafe br_hmac_out(&context, start!) }
    unsafe wipeContext(&context)
  }
}

/// A SHA-1, SHA-256 or SHA-512 hash of a message in pieces. Source: FIPS 180-4.
@safe
public struct HashStream: StreamingDigest {
  private var context = unsafe br_hash_compat_context()

  init(_ hash: UnsafePointer<br_hash_class>) {
    unsafe holdfast_hash_init(&context, hash)
  }

  /// Appends a piece of the message.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.lend { start, count in unsafe holdfast_hash_update(&context, start, count) }
  }

  /// Writes the digest and wipes the state. Call it once, as the last operation.
  ///
  /// - Throws: `CryptographyFailure` unless `output` has exactly the digest's length.
  public mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard unsafe output.count == holdfast_hash_size(&context) else { throw CryptographyFailure() }
    unsafe output.lend { start, _ in unsafe holdfast_hash_out(&context, start!) }
    unsafe wipeContext(&context)
  }
}

extension Span where Element == UInt8 {
  /// Passes the bytes and their number to a C function.
  func lend<Result>(_ body: (UnsafePointer<UInt8>?, Int) -> Result) -> Result {
    unsafe withUnsafeBufferPointer { unsafe body($0.baseAddress, $0.count) }
  }
}

extension MutableSpan where Element == UInt8 {
  /// Passes the bytes and their number to a C function that writes them.
  mutating func lend<Result>(_ body: (UnsafeMutablePointer<UInt8>?, Int) -> Result) -> Result {
    unsafe withUnsafeMutableBufferPointer { unsafe body($0.baseAddress, $0.count) }
  }
}

extension Secret {
  /// Passes the bytes to a C function.
  borrowing func lend<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    withBytes { bytes in unsafe bytes.lend { start, _ in unsafe body(start!) } }
  }

  /// Passes the bytes to a C function that writes them.
  mutating func lendMutable<Result>(_ body: (UnsafeMutablePointer<UInt8>) -> Result) -> Result {
    withMutableBytes { bytes in unsafe bytes.lend { start, _ in unsafe body(start!) } }
  }
}

/// Overwrites the context of a C function with zeros. The context holds no references.
func wipeContext<Context>(_ context: inout Context) {
  unsafe withUnsafeMutableBytes(of: &context) { raw in
    var bytes = unsafe raw.bindMemory(to: UInt8.self).mutableSpan
    wipe(&bytes)
  }
}
