import HoldfastCore
import HoldfastOpenSSL

/// A device's key whose results are secret.
struct MarkingKey: AgreementKey, ~Copyable {
  private var key: P256PrivateKey

  init(_ key: consuming P256PrivateKey) { self.key = key }

  var publicPoint: P256Point { key.publicPoint }

  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    try key.agree(with: peer, into: &shared)
    shared.withBytes { mark($0) }
  }
}

/// libcrypto, with marks: of a decrypted message, only some strings are secret.
struct MarkingCryptography: Cryptography, ~Copyable {
  typealias SHA1 = OpenSSLCryptography.SHA1
  typealias SHA256 = OpenSSLCryptography.SHA256
  typealias SHA512 = OpenSSLCryptography.SHA512
  typealias HMACSHA1 = OpenSSLCryptography.HMACSHA1
  typealias HMACSHA256 = OpenSSLCryptography.HMACSHA256
  typealias HMACSHA512 = OpenSSLCryptography.HMACSHA512

  private var libcrypto = OpenSSLCryptography()
  private let secrets: [[UInt8]]
  /// The number of secrets that were found in messages.
  private(set) var markedCount = 0

  /// Creates it with the secrets that messages may contain: as they are, or in base64 within the payload of a JWS.
  init(secrets: [[UInt8]]) { self.secrets = secrets }

  mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    try libcrypto.aes256GCMOpen(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    reveal(message.span)
    let bytes = [UInt8](message.span)
    for place in places(of: secrets, in: bytes) + placesInPayload(of: secrets, bytes) {
      mark(message.span.extracting(place))
      markedCount += 1
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

/// Returns where the strings are in `bytes`.
private func places(of strings: [[UInt8]], in bytes: [UInt8]) -> [Range<Int>] {
  strings.flatMap { string in
    (0...max(bytes.count - string.count, 0)).filter { bytes[$0...].starts(with: string) }
      .map { $0..<$0 + string.count }
  }
}

/// Returns where the payload of a JWS has the secrets, which are base64 in JSON in base64url. Empty for any other message.
///
/// Of the characters of base64url, the first and the last of a secret may also have bits of the quotation marks around it, which
/// are public, and so then are these characters.
private func placesInPayload(of secrets: [[UInt8]], _ bytes: [UInt8]) -> [Range<Int>] {
  let dots = bytes.indices.filter { bytes[$0] == UInt8(ascii: ".") }
  var payload = ByteBuffer<3072>()
  guard dots.count == 2, (try? payload.append(base64URL: bytes[(dots[0] + 1)..<dots[1]].span)) != nil else { return [] }
  let texts = secrets.map { secret in
    var text: [UInt8] = []
    text.append(asPaddedBase64: secret.span)
    return text
  }
  return places(of: texts, in: [UInt8](payload.bytes)).map {
    dots[0] + 1 + ($0.lowerBound * 4 + 2) / 3..<dots[0] + 1 + $0.upperBound * 4 / 3
  }
}
