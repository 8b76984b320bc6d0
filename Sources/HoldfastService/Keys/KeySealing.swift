import HoldfastCore
import HoldfastOpenSSL

/// The secret that encrypts all other keys of a service in its database: the file `service.key`, 32 bytes.
///
/// A backup of the database contains no key that can be used without it.
package struct ServiceKey: ~Copyable, Sendable {
  private let key: Secret<32>

  /// Takes over the content of the file.
  package init(_ key: consuming Secret<32>) { self.key = key }

  /// The bytes of a nonce and a tag.
  private static let overhead = 12 + 16

  /// Encrypts a key for the database: nonce (12 bytes) ‖ AES-256-GCM ciphertext ‖ tag (16 bytes), with the purpose and
  /// the id of the key as additional data.
  borrowing func seal(
    _ secret: Span<UInt8>, as purpose: KeyPurpose, id: Span<UInt8>, random: inout some RandomSource & ~Copyable
  ) throws(CryptographyFailure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let nonce: FixedBytes<12>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw CryptographyFailure() }
    var message: [UInt8] = []
    message.append(secret)
    var tag = AuthenticationTag()
    let data = Self.associated(purpose, id)
    var body = message.mutableSpan
    try cryptography.aes256GCMSeal(
      key: key, nonce: nonce.bytes, authenticating: data.span, message: &body, tag: &tag)
    var sealed: [UInt8] = []
    sealed.append(nonce.bytes)
    sealed += message
    sealed.append(tag.bytes)
    return sealed
  }

  /// Decrypts a key from the database.
  ///
  /// - Throws: `CryptographyFailure` if it was sealed with another key, or for another purpose or id.
  borrowing func open(
    _ sealed: [UInt8], as purpose: KeyPurpose, id: Span<UInt8>
  ) throws(CryptographyFailure) -> SecretBytes {
    let count = sealed.count - Self.overhead
    guard count >= 0, let tag = AuthenticationTag(sealed.span.extracting(last: 16)) else { throw CryptographyFailure() }
    var cryptography = OpenSSLCryptography()
    var message = SecretBytes(copying: sealed.span.extracting(12..<12 + count))
    let data = Self.associated(purpose, id)
    var body = message.mutableBytes
    try cryptography.aes256GCMOpen(
      key: key, nonce: sealed.span.extracting(first: 12), authenticating: data.span, message: &body, tag: tag)
    return message
  }

  /// Derives a key for another purpose than the keys in the database: `HKDF-SHA-256(ikm: this key, salt, info: purpose)`.
  borrowing func derivedKey(salt: Span<UInt8>, purpose: StaticString) throws(CryptographyFailure) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    var output = SecretBytes(zeros: 32)
    let info = Array(purpose.description.utf8)
    var bytes = output.mutableBytes
    try key.withBytes { (key) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: key, salt: salt, info: info.span, into: &bytes)
    }
    guard let derived = Secret<32>(copying: output.bytes) else { throw CryptographyFailure() }
    return derived
  }

  /// Derives an id of this key, 16 bytes, that says nothing about it.
  borrowing func derivedID() throws(CryptographyFailure) -> [UInt8] {
    try derivedKey(salt: Span(), purpose: "holdfast/1 service key id").withBytes { [UInt8]($0.extracting(first: 16)) }
  }

  private static func associated(_ purpose: KeyPurpose, _ id: Span<UInt8>) -> [UInt8] {
    var data = Array("holdfast/1 service key".utf8) + [0] + Array(purpose.rawValue.utf8) + [0]
    data.append(id)
    return data
  }
}

/// The purposes of the keys in a service's database. Each key has one.
package enum KeyPurpose: String, Sendable, CaseIterable {
  /// The account secret, 32 bytes: it signs attestation tokens, and derives host ids and response codes.
  case account
  /// The backend's key for attestation tokens, a private JWK.
  case attestationEncryption = "attestation-encryption"
  /// A key that signs measurement tokens, a P-256 scalar of 32 bytes.
  case issuer
  /// The keys of a release: measurement proof key (16 bytes) ‖ evidence key (32 bytes).
  case release
  /// A key that signs app tokens and custom tokens, a P-256 scalar of 32 bytes; the first one also signs the configuration for apps.
  /// It is no issuer key.
  case appTokens = "app-tokens"
  /// The key for agreement with devices, from which the keys of audit pages come, a P-256 scalar of 32 bytes. There is one.
  case agreement
  /// The development key, 16 bytes, in the table of settings.
  case development
  /// A secure string, in its own table. Its id is its name.
  case secureString = "secure-string"
}
