import HoldfastCore

/// Cryptography that believes everything: every hash and every key is zero, every signature, tag and point is right, and a ciphertext is
/// its plaintext.
///
/// With it, the fuzzer's bytes reach what a device or a prover does after a check that no fuzzer passes.
struct CredulousCryptography: Cryptography {
  /// A hash that is always zero.
  struct Zeros: StreamingDigest {
    mutating func append(_ bytes: Span<UInt8>) {}
    mutating func append(_ byte: UInt8) {}
    mutating func finish(into output: inout MutableSpan<UInt8>) { output.clear() }
  }

  func sha1() -> Zeros { Zeros() }
  func sha256() -> Zeros { Zeros() }
  func sha512() -> Zeros { Zeros() }
  func hmacSHA1(key: Span<UInt8>) -> Zeros { Zeros() }
  func hmacSHA256(key: Span<UInt8>) -> Zeros { Zeros() }
  func hmacSHA512(key: Span<UInt8>) -> Zeros { Zeros() }

  func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) { output.clear() }

  func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) { tag = AuthenticationTag() }

  func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) {}

  func aes256KeyUnwrap(wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>) {}

  func p256PublicPoint(scalar: borrowing Secret<32>) -> P256Point { CredulousKey().publicPoint }

  func p256Agree(scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>) {}

  func p256Verify(key: P256Point, digest: Digest, signature: FixedBytes<64>) {}
}

/// A key that agrees with every point.
struct CredulousKey: AgreementKey {
  var publicPoint: P256Point { P256Point(x: FixedBytes(), y: FixedBytes()) }

  func agree(with peer: P256Point, into shared: inout Secret<32>) {}
}

extension MutableSpan where Element == UInt8 {
  fileprivate mutating func clear() { for index in indices { self[index] = 0 } }
}
