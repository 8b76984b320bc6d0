import Glibc
import HoldfastLinux

/// A backup in a file without a name, for a client that takes it piece by piece. The file ends with this value.
///
/// The copy is complete before its first byte leaves: however slow the client is, it holds no transaction of the database.
package final class BackupCopy: Sendable {
  private let file: Descriptor

  /// The largest piece, in bytes.
  private static let pieceByteCount = 65_536

  fileprivate init(in directory: String) throws(SystemError) {
    file = try Descriptor.unnamedFile(in: directory)
  }

  fileprivate func clear() throws(SystemError) {
    try retrying { ftruncate(file.number, 0) }
    try retrying { lseek(file.number, 0, SEEK_SET) }
  }

  fileprivate func append(_ bytes: [UInt8]) throws(SystemError) { try file.write(bytes.span) }

  /// Returns the length of the backup, in bytes.
  package func byteCount() throws(SystemError) -> Int { Int(try file.status().st_size) }

  /// Returns the piece that begins at an offset, at most 65,536 bytes; it is empty at the end.
  package func piece(at offset: Int) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.pieceByteCount)
    var span = bytes.mutableSpan
    let count = try file.read(into: &span, at: UInt64(offset))
    return Array(bytes[..<count])
  }
}

extension Fleet {
  /// Writes a backup into a file without a name, after an entry in the log of changes that says for whom.
  ///
  /// - Parameter directory: The folder of the file, whose file system needs room for the whole backup.
  package func backupCopy(in directory: String, for actor: Actor) throws(BackupFileFault) -> BackupCopy {
    do throws(FleetFault) {
      try transaction { (session) throws(FleetFault) in try session.log("service.export", "", by: actor) }
    } catch { throw .backup(.fleet(error)) }
    let copy: BackupCopy
    do throws(SystemError) { copy = try BackupCopy(in: directory) } catch {
      throw .file(FileError(error, at: directory))
    }
    var failure: SystemError?
    func succeeds(_ body: () throws(SystemError) -> Void) -> Bool {
      do throws(SystemError) { try body() } catch {
        failure = error
        return false
      }
      return true
    }
    do throws(BackupFault) {
      _ = try export(
        begin: { succeeds { () throws(SystemError) in try copy.clear() } },
        write: { bytes in succeeds { () throws(SystemError) in try copy.append(bytes) } })
    } catch {
      throw failure.map { .file(FileError($0, at: directory)) } ?? .backup(error)
    }
    return copy
  }
}
