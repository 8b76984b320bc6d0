import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// A token, opened: the shared secret and what the token says about the app are secret; its structure is not.
func token() throws -> Bool {
  let claims = TestClaims(for: DeviceID(filledWith: 0xd1))
  let issuer = try TestIssuer()
  var cryptography = MarkingCryptography(secrets: [claims.proofKey, claims.integrity, claims.device])
  var key = MarkingKey(try P256PrivateKey())
  let keyID = try HoldfastCore.keyID(of: key.publicPoint, using: &cryptography)
  let token = try issuer.token(claims, to: key.publicPoint)
  var trust = try MemoryStore(trusting: issuer.point)
  var opener = TokenOpener()
  var verified = AuthenticatedToken()
  try opener.open(
    token.span, encoding: .cose, key: &key, keyID: keyID, trust: &trust, acceptsUnsigned: false, acceptsMAC: false,
    using: &cryptography, into: &verified)
  guard cryptography.markedCount == 3 else { return false }
  return verified.claims.integrity.withBytes { constantTimeEqual($0, claims.integrity.span) }
}

/// A device's key whose results are secret.
private struct MarkingKey: AgreementKey, ~Copyable {
  private var key: P256PrivateKey

  init(_ key: consuming P256PrivateKey) { self.key = key }

  var publicPoint: P256Point { key.publicPoint }

  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    try key.agree(with: peer, into: &shared)
    shared.withBytes { mark($0) }
  }
}

/// libcrypto, with marks: of a decrypted message, only some strings are secret.
private struct MarkingCryptography: Cryptography, ~Copyable {
  typealias SHA1 = OpenSSLCryptography.SHA1
  typealias SHA256 = OpenSSLCryptography.SHA256
  typealias SHA512 = OpenSSLCryptography.SHA512
  typealias HMACSHA1 = OpenSSLCryptography.HMACSHA1
  typealias HMACSHA256 = OpenSSLCryptography.HMACSHA256
  typealias HMACSHA512 = OpenSSLCryptography.HMACSHA512

  private var libcrypto = OpenSSLCryptography()
  private let secrets: [[UInt8]]
  /// The number of secrets that were found in a message.
  private(set) var markedCount = 0

  init(secrets: [[UInt8]]) { self.secrets = secrets }

  mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    try libcrypto.aes256GCMOpen(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    reveal(message.span)
    let bytes = [UInt8](message.span)
    for secret in secrets {
      for start in 0...max(bytes.count - secret.count, 0) where bytes[start...].starts(with: secret) {
        mark(message.span.extracting(start..<start + secret.count))
        markedCount += 1
      }
    }
  }

  /// The digest of the claims is not a secret: it has their entropy, and says nothing about a part of them.
  mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure) {
    let bytes = [UInt8](digest.bytes)
    reveal(bytes.span)
    try libcrypto.p256Verify(key: key, digest: Digest(bytes.span)!, signature: signature)
  }

  mutating func sha1() throws(CryptographyFailure) -> SHA1 { libcrypto.sha1() }
  mutating func sha256() throws(CryptographyFailure) -> SHA256 { libcrypto.sha256() }
  mutating func sha512() throws(CryptographyFailure) -> SHA512 { libcrypto.sha512() }
  mutating func hmacSHA1(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA1 { try libcrypto.hmacSHA1(key: key) }
  mutating func hmacSHA256(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA256 {
    try libcrypto.hmacSHA256(key: key)
  }
  mutating func hmacSHA512(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA512 {
    try libcrypto.hmacSHA512(key: key)
  }
  mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    try libcrypto.hkdfSHA256(inputKey: inputKey, salt: salt, info: info, into: &output)
  }
  mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure) {
    try libcrypto.aes256GCMSeal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
  }
  mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure) {
    try libcrypto.aes256KeyUnwrap(wrappingKey: wrappingKey, wrapped: wrapped, into: &key)
  }
  mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    try libcrypto.p256PublicPoint(scalar: scalar)
  }
  mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure) {
    try libcrypto.p256Agree(scalar: scalar, peer: peer, into: &shared)
  }
}
