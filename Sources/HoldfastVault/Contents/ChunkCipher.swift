import HoldfastCore
import HoldfastOpenSSL

/// The encryption of one file or value: a header that commits to its key, then chunks of AES-256-GCM.
///
/// | bytes | contents |
/// | --- | --- |
/// | 16 | `holdfast-crypt/1` |
/// | 16 | the vault's id |
/// | 32 | a random salt |
/// | 32 | the commitment to the key |
/// | 16 to 65,552 each | chunks: at most 65,536 encrypted bytes and their tag; only the last one is shorter |
///
/// The nonce of a chunk is its number, 11 bytes big-endian from 0, and 1 for the last chunk or 0. The header is additional data of
/// each chunk.
///
/// Source: STREAM in "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance" (Hoang, Reyhanitabar, Rogaway, Vizár,
/// 2015), as age uses it.
struct ChunkCipher: ~Copyable {
  static let magic = Array("holdfast-crypt/1".utf8)
  static let headerByteCount = 96
  static let chunkByteCount = 65_536
  static let tagByteCount = 16

  let header: [UInt8]
  private let key: Secret<32>
  private var number: UInt64 = 0
  private var cryptography = OpenSSLCryptography()

  /// Begins an encryption.
  ///
  /// - Parameter salt: 32 fresh random bytes.
  init(
    encrypting context: String, id: VaultID, key: borrowing SecretBytes, salt: FixedBytes<32>
  ) throws(CryptographyFailure) {
    let derived = try Self.derived(key, id: id, salt: salt.bytes, context: context)
    var header = Self.magic
    header.append(id.bytes)
    header.append(salt.bytes)
    header.append(derived.bytes.extracting(last: 32))
    self.header = header
    self.key = Secret(copying: derived.bytes.extracting(first: 32))!
  }

  /// Begins a decryption.
  ///
  /// - Throws: ``VaultFault/notEncrypted``, ``VaultFault/otherVault``; ``VaultFault/contentsDamaged`` if the header does not commit
  ///   to the key; ``VaultFault/cryptography``.
  init(
    decrypting header: [UInt8], context: String, id: VaultID, key: borrowing SecretBytes
  ) throws(VaultFault) {
    guard header.count == Self.headerByteCount, header.starts(with: Self.magic) else { throw .notEncrypted }
    guard header.span.extracting(16..<32).elementsEqual(id.bytes) else { throw .otherVault }
    let derived: SecretBytes
    do throws(CryptographyFailure) {
      derived = try Self.derived(key, id: id, salt: header.span.extracting(32..<64), context: context)
    } catch { throw .cryptography }
    guard constantTimeEqual(derived.bytes.extracting(last: 32), header.span.extracting(last: 32)) else {
      throw .contentsDamaged
    }
    self.header = header
    self.key = Secret(copying: derived.bytes.extracting(first: 32))!
  }

  /// Encrypts the next chunk in place, and returns its tag.
  mutating func seal(_ chunk: inout MutableSpan<UInt8>, isLast: Bool) throws(CryptographyFailure) -> AuthenticationTag {
    let (nonce, header) = (nextNonce(isLast), header)
    var tag = AuthenticationTag()
    try cryptography.aes256GCMSeal(
      key: key, nonce: nonce.span, authenticating: header.span, message: &chunk, tag: &tag)
    return tag
  }

  /// Decrypts the next chunk in place; throws and wipes it if it is not the next one as it was written.
  mutating func open(
    _ chunk: inout MutableSpan<UInt8>, tag: AuthenticationTag, isLast: Bool
  ) throws(CryptographyFailure) {
    let (nonce, header) = (nextNonce(isLast), header)
    try cryptography.aes256GCMOpen(
      key: key, nonce: nonce.span, authenticating: header.span, message: &chunk, tag: tag)
  }

  private mutating func nextNonce(_ isLast: Bool) -> InlineArray<12, UInt8> {
    var nonce = InlineArray<12, UInt8>(repeating: 0)
    for index in 0..<8 { nonce[3 + index] = UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * index)) }
    nonce[11] = isLast ? 1 : 0
    number += 1
    return nonce
  }

  /// Derives key ‖ commitment, 32 bytes each.
  private static func derived(
    _ key: borrowing SecretBytes, id: VaultID, salt: Span<UInt8>, context: String
  ) throws(CryptographyFailure) -> SecretBytes {
    var info = Array("holdfast/1 vault contents".utf8) + [0]
    info.append(id.bytes)
    info += Array(context.utf8)
    return try derivedBytes(from: key.bytes, salt: salt, info: info, count: 64)
  }
}
