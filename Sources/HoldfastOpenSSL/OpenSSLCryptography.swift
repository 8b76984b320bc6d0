import COpenSSL
import HoldfastCore

/// Holdfast's cryptography by libcrypto; contexts are made when first needed, and kept.
///
/// Used by one thread at a time.
package struct OpenSSLCryptography: ~Copyable, Cryptography, Sendable {
  private var gcm: GCMCipher?
  private var keyWrap: KeyWrapCipher?
  private var hkdf: KeyDerivation?
  private var verifier: SignatureVerifier?

  package init() {}

  package mutating func sha1() -> SHA1Stream {
    SHA1Stream()
  }

  package mutating func sha256() -> SHA256Stream {
    SHA256Stream()
  }

  package mutating func sha512() -> SHA512Stream {
    SHA512Stream()
  }

  @inlinable
  package mutating func hmacSHA1(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA1Stream> {
    try HMACStream(key: key)
  }

  @inlinable
  package mutating func hmacSHA256(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA256Stream> {
    try HMACStream(key: key)
  }

  @inlinable
  package mutating func hmacSHA512(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA512Stream> {
    try HMACStream(key: key)
  }

  package mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    if hkdf == nil { hkdf = try KeyDerivation(.hkdf) }
    try hkdf!.derive(inputKey: inputKey, salt: salt, info: info, into: &output)
  }

  package mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout FixedBytes<16>
  ) throws(CryptographyFailure) {
    if gcm == nil { gcm = try GCMCipher(keyByteCount: 32) }
    try key.withBytes { (key) throws(CryptographyFailure) in
      try gcm!.seal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
    }
  }

  package mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: FixedBytes<16>
  ) throws(CryptographyFailure) {
    if gcm == nil { gcm = try GCMCipher(keyByteCount: 32) }
    try key.withBytes { (key) throws(CryptographyFailure) in
      try gcm!.open(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    }
  }

  package mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure) {
    if keyWrap == nil { keyWrap = try KeyWrapCipher(keyByteCount: 32) }
    try wrappingKey.withBytes { (wrappingKey) throws(CryptographyFailure) in
      try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
        try keyWrap!.unwrap(key: wrappingKey, wrapped: wrapped, into: &key)
      }
    }
  }

  package mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure) {
    if verifier == nil { verifier = try SignatureVerifier() }
    try verifier!.verify(point: key, digest: digest, signature: signature)
  }
}

extension OpenSSLCryptography {
  package mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    try P256PrivateKey(scalar: scalar).publicPoint
  }

  package mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure) {
    var key = try P256PrivateKey(scalar: scalar)
    try key.agree(with: peer, into: &shared)
  }
}
