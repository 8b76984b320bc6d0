import Glibc
import HoldfastCore
import HoldfastLinux

/// The files of a vault's folder: two copies of the record, and the counter of attempts.
///
/// Each is replaced atomically, so a power cut leaves the old contents or the new ones. The second copy of the record replaces a
/// first one that was damaged in another way.
struct VaultFiles: Sendable {
  static let recordNames = ["vault.key", "vault.copy"]
  static let attemptsName = "attempts"

  let folder: String

  private func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// The record and the copies that are damaged, missing or older.
  struct FoundRecord {
    let record: VaultRecord
    let staleNames: [String]
  }

  /// Reads the record.
  ///
  /// - Throws: ``VaultFault/missing``, ``VaultFault/incomplete``, ``VaultFault/wiped``, ``VaultFault/damaged``.
  func record(for host: borrowing Secret<32>) throws(VaultFault) -> FoundRecord {
    try checkIsComplete()
    let copies = [
      try copy(Self.recordNames[0], for: host), try copy(Self.recordNames[1], for: host),
    ]
    guard let newest = copies.compactMap({ $0 }).max(by: { $0.revision < $1.revision }) else {
      throw try whyThereIsNoRecord(host)
    }
    return FoundRecord(
      record: newest, staleNames: zip(Self.recordNames, copies).filter { $0.1 != newest }.map { $0.0 })
  }

  private func checkIsComplete() throws(VaultFault) {
    do throws(FileError) {
      try Files.requirePrivateFolder(at: folder)
      try FolderKind.vault.require(ofFolder: folder)
      guard try IncompleteFolder.isHalfMade(folder) else { return }
    } catch {
      guard error.kind == .notFound else { throw .file(error) }
      throw .missing
    }
    throw .incomplete
  }

  private func whyThereIsNoRecord(_ host: borrowing Secret<32>) throws(VaultFault) -> VaultFault {
    if try attempts(host)?.attempts == .wiped { return .wiped }
    return hasFiles ? .damaged : .missing
  }

  /// Whether the folder has any file of a vault.
  var hasFiles: Bool {
    (Self.recordNames + [Self.attemptsName]).contains { unsafe access(path($0), F_OK) == 0 }
  }

  /// Reads the counter; nil if it is missing or damaged.
  func attempts(_ host: borrowing Secret<32>) throws(VaultFault) -> (id: VaultID, attempts: Attempts)? {
    guard let bytes = try contents(Self.attemptsName, byteCount: Attempts.byteCount) else { return nil }
    do throws(CryptographyFailure) { return try Attempts.parse(bytes, host: host) } catch { throw .cryptography }
  }

  func write(_ attempts: Attempts, id: VaultID, for host: borrowing Secret<32>) throws(VaultFault) {
    let bytes: [UInt8]
    do throws(CryptographyFailure) { bytes = try attempts.encoded(id: id, host: host) } catch { throw .cryptography }
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: path(Self.attemptsName), overwrite: true)
    } catch { throw .file(error) }
  }

  /// Writes both copies of a record.
  ///
  /// - Throws: ``VaultFault/copyNotWritten(_:)`` if the first one was written; then the new record counts.
  func write(_ record: VaultRecord, for host: borrowing Secret<32>) throws(VaultFault) {
    let bytes = try encoded(record, host)
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: path(Self.recordNames[0]), overwrite: true)
    } catch { throw .file(error) }
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: path(Self.recordNames[1]), overwrite: true)
    } catch { throw .copyNotWritten(error) }
  }

  /// Writes the record over copies that are not its own. A failure changes nothing that counts.
  func repair(_ found: FoundRecord, for host: borrowing Secret<32>) {
    guard !found.staleNames.isEmpty, let bytes = try? encoded(found.record, host) else { return }
    for name in found.staleNames { try? Files.writeFileAtomically(bytes, at: path(name), overwrite: true) }
  }

  /// Overwrites and removes both copies of the record, whatever else is in the folder, and then what interrupted writes have left.
  /// The removal is durable when this returns. Files that are not a vault's stay.
  func eraseKeys() throws(VaultFault) {
    do throws(FileError) {
      for name in Self.recordNames {
        try Self.ignoringAbsence { () throws(FileError) in try Files.eraseFile(at: path(name)) }
      }
      for name in try Files.names(inFolder: folder, limit: 65_536) where Self.isUnfinished(name) {
        try Files.eraseFile(at: path(name))
      }
    } catch { throw .file(error) }
  }

  /// Removes the counter, after ``eraseKeys()``, and the folder unless something else is in it.
  func removeFolder() throws(VaultFault) {
    do throws(FileError) {
      try Self.ignoringAbsence { () throws(FileError) in try Files.removeFile(at: path(Self.attemptsName)) }
      do throws(FileError) { try Files.removeEmptyFolder(at: folder) } catch {
        guard error.kind == .exists else { throw error }
      }
    } catch { throw .file(error) }
  }

  private static func isUnfinished(_ name: String) -> Bool {
    name == IncompleteFolder.markName || name.hasPrefix(".holdfast-") && name.hasSuffix(".tmp")
  }

  private static func ignoringAbsence(_ body: () throws(FileError) -> Void) throws(FileError) {
    do throws(FileError) { try body() } catch {
      guard error.kind == .notFound else { throw error }
    }
  }

  private func encoded(_ record: VaultRecord, _ host: borrowing Secret<32>) throws(VaultFault) -> [UInt8] {
    do throws(CryptographyFailure) { return try record.encoded(for: host) } catch { throw .cryptography }
  }

  private func copy(_ name: String, for host: borrowing Secret<32>) throws(VaultFault) -> VaultRecord? {
    guard let bytes = try contents(name, byteCount: VaultRecord.byteCount) else { return nil }
    do throws(CryptographyFailure) { return try VaultRecord(bytes, for: host) } catch { throw .cryptography }
  }

  /// Reads a small file; nil if there is none, or if it cannot be one of a vault.
  private func contents(_ name: String, byteCount: Int) throws(VaultFault) -> [UInt8]? {
    do throws(FileError) {
      return try Files.readFile(at: path(name), limit: byteCount, requirements: [.secret, .noSymbolicLink])
    } catch {
      switch error.kind {
      case .notFound, .tooLarge, .isDirectory, .notRegular, .symbolicLink: return nil
      default: throw .file(error)
      }
    }
  }
}
