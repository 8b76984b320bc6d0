import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The encryption of a backup: a header, then chunks of AES-256-GCM.
///
/// | bytes | contents |
/// | --- | --- |
/// | 24 | `holdfast-service/backup1` |
/// | 16 | the id of the service key, so that another key is recognised |
/// | 32 | a random salt |
/// | 1 to 65,552 each | chunks: at most 65,536 encrypted bytes and their tag; only the last one is shorter |
///
/// The key of the chunks is `HKDF-SHA-256(ikm: service key, salt, info: "holdfast/1 backup", 32 bytes)`. The nonce of a chunk is
/// its number, 11 bytes big-endian from 0, and 1 for the last chunk or 0. The header is additional data of each chunk. A file that
/// was cut, extended or changed anywhere, or whose chunks were moved, does not decrypt to its end.
///
/// Source: STREAM in "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance" (Hoang, Reyhanitabar, Rogaway, Vizár,
/// 2015), as age uses it.
package final class BackupSealing {
  static let magic = Array("holdfast-service/backup1".utf8)
  package static let headerByteCount = magic.count + 16 + 32
  package static let chunkByteCount = 65_536
  package static let tagByteCount = 16

  /// The first ``headerByteCount`` bytes of the file.
  package let header: [UInt8]
  private let key: Secret<32>
  private var count: UInt64 = 0

  private init(header: [UInt8], key: consuming Secret<32>) {
    self.header = header
    self.key = key
  }

  /// Begins a backup with a fresh salt.
  package static func writing(
    with serviceKey: borrowing ServiceKey, random: inout SystemRandom
  ) throws(CryptographyFailure) -> BackupSealing {
    let salt: FixedBytes<32>
    do throws(RandomFailure) { salt = try random.fixedBytes() } catch { throw CryptographyFailure() }
    var header = magic + (try serviceKey.derivedID())
    header.append(salt.bytes)
    return BackupSealing(
      header: header, key: try serviceKey.derivedKey(salt: salt.bytes, purpose: "holdfast/1 backup"))
  }

  /// Begins to read a backup.
  ///
  /// - Parameter header: The first ``headerByteCount`` bytes of the file.
  /// - Throws: `notABackup`, `wrongKey`; `cryptography`.
  static func reading(
    _ header: [UInt8], with serviceKey: borrowing ServiceKey
  ) throws(BackupFault) -> BackupSealing {
    guard header.count == headerByteCount, Array(header.prefix(magic.count)) == magic else { throw .notABackup }
    let id: [UInt8]
    do throws(CryptographyFailure) { id = try serviceKey.derivedID() } catch { throw .fleet(.cryptography) }
    guard Array(header[magic.count..<magic.count + 16]) == id else { throw .wrongKey }
    do throws(CryptographyFailure) {
      return BackupSealing(
        header: header,
        key: try serviceKey.derivedKey(salt: header.span.extracting(last: 32), purpose: "holdfast/1 backup"))
    } catch { throw .fleet(.cryptography) }
  }

  /// Encrypts the next chunk.
  package func seal(_ chunk: [UInt8], isLast: Bool) throws(CryptographyFailure) -> [UInt8] {
    var sealed = chunk
    var tag = AuthenticationTag()
    let (nonce, header) = (nextNonce(isLast), header)
    var message = sealed.mutableSpan
    var cryptography = OpenSSLCryptography()
    try cryptography.aes256GCMSeal(
      key: key, nonce: nonce.span, authenticating: header.span, message: &message, tag: &tag)
    sealed.append(tag.bytes)
    return sealed
  }

  /// Decrypts the next chunk.
  ///
  /// - Throws: `CryptographyFailure` if it is not the next chunk of this backup as it was written.
  func open(_ sealed: [UInt8], isLast: Bool) throws(CryptographyFailure) -> [UInt8] {
    let count = sealed.count - Self.tagByteCount
    guard count >= 0, let tag = AuthenticationTag(sealed.span.extracting(last: Self.tagByteCount)) else {
      throw CryptographyFailure()
    }
    var chunk = Array(sealed[..<count])
    let (nonce, header) = (nextNonce(isLast), header)
    var message = chunk.mutableSpan
    var cryptography = OpenSSLCryptography()
    try cryptography.aes256GCMOpen(
      key: key, nonce: nonce.span, authenticating: header.span, message: &message, tag: tag)
    return chunk
  }

  private func nextNonce(_ isLast: Bool) -> [UInt8] {
    defer { count += 1 }
    return [0, 0, 0] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) } + [isLast ? 1 : 0]
  }
}

/// The reason why a backup could not be written or restored. In each case, nothing is half done.
package struct BackupFault: Error, Equatable, Sendable {
  /// The kinds of reasons.
  package enum Kind: Sendable {
    /// The file is not a backup of this service.
    case notABackup
    /// The backup was made with another service key.
    case wrongKey
    /// The file was cut or changed.
    case damaged
    /// A newer version of the service wrote the backup.
    case newerVersion
    /// The database has a service already.
    case notEmpty
    /// The file could not be read, or no more be written.
    case file
    /// The service could not answer.
    case fleet
  }

  package let kind: Kind
  /// The service's fault, for the kind `fleet`.
  package let cause: FleetFault

  private init(_ kind: Kind, cause: FleetFault = .corrupt) { (self.kind, self.cause) = (kind, cause) }

  package static let notABackup = BackupFault(.notABackup)
  package static let wrongKey = BackupFault(.wrongKey)
  package static let damaged = BackupFault(.damaged)
  package static let newerVersion = BackupFault(.newerVersion)
  package static let notEmpty = BackupFault(.notEmpty)
  package static let file = BackupFault(.file)
  static func fleet(_ cause: FleetFault) -> BackupFault { BackupFault(.fleet, cause: cause) }
}
