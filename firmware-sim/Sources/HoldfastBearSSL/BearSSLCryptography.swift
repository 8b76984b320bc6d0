import CBearSSL
import HoldfastCore

/// Holdfast's cryptography by BearSSL, in constant time over secrets and without a heap.
public struct BearSSLCryptography: Cryptography {
  public init() {}

  public mutating func sha1() -> HashStream { unsafe HashStream(holdfast_sha1()) }
  public mutating func sha256() -> HashStream { unsafe HashStream(holdfast_sha256()) }
  public mutating func sha512() -> HashStream { unsafe HashStream(holdfast_sha512()) }

  public mutating func hmacSHA1(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha1(), key: key) }
  public mutating func hmacSHA256(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha256(), key: key) }
  public mutating func hmacSHA512(key: Span<UInt8>) -> HMACStream { unsafe HMACStream(holdfast_sha512(), key: key) }

  public mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    // RFC 5869 §2.3: at most 255 blocks.
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

  public mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout FixedBytes<16>
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

  public mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: FixedBytes<16>
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
  public mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    var point = P256Point()
    var bytes = point.mutableBytes
    let isValid = unsafe scalar.lend { scalar in
      unsafe bytes.lend { point, _ in unsafe holdfast_p256_public_point(scalar, point!) }
    }
    guard isValid == 1 else { throw CryptographyFailure() }
    return point
  }

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
