import Glibc
import HoldfastCore
import HoldfastDatabase
import HoldfastLinux

/// The reasons why a backup in a file could not be written or restored.
package enum BackupFileFault: Error {
  case file(FileError)
  case backup(BackupFault)
}

extension Fleet {
  /// Writes a backup into a new file, which has its name only when it is complete.
  ///
  /// - Parameter path: The file; nothing may have that name.
  /// - Returns: The number of records.
  package func export(to path: String) throws(BackupFileFault) -> UInt64 {
    let target = BackupTarget(path)
    do throws(BackupFault) {
      let count = try export(
        begin: { target.begin() }, write: { target.append($0) })
      guard target.finish() else { throw .file }
      return count
    } catch {
      if let cause = target.error { throw .file(cause) }
      throw .backup(error)
    }
  }

  /// Restores a backup from a file; see ``restore(into:serviceKey:isComplete:by:clock:begin:read:)``.
  package static func restore(
    fromFile path: String, into location: DatabaseLocation, serviceKey: borrowing ServiceKey, isComplete: Bool,
    by actor: Actor
  ) throws(BackupFileFault) -> Restoration {
    let source = BackupSource(path)
    do throws(BackupFault) {
      return try restore(
        into: location, serviceKey: serviceKey, isComplete: isComplete, by: actor,
        begin: { source.begin() }, read: { source.read($0) })
    } catch {
      if let cause = source.error { throw .file(cause) }
      throw .backup(error)
    }
  }
}

/// The file that a backup is written into, from one thread.
private final class BackupTarget {
  private let path: String
  private var file: UnfinishedFile?
  /// The reason why the file could not be written.
  private(set) var error: FileError?

  init(_ path: String) { self.path = path }

  func begin() -> Bool { succeeds { () throws(FileError) in file = try UnfinishedFile(at: path) } }

  func append(_ bytes: [UInt8]) -> Bool { succeeds { () throws(FileError) in try file?.append(bytes.span) } }

  func finish() -> Bool { succeeds { () throws(FileError) in try file?.finish() } }

  private func succeeds(_ body: () throws(FileError) -> Void) -> Bool {
    do throws(FileError) { try body() } catch {
      self.error = error
      return false
    }
    return true
  }
}

/// The file that a backup is read from, from one thread.
private final class BackupSource {
  private let path: String
  private var file: Descriptor?
  private(set) var error: FileError?

  init(_ path: String) { self.path = path }

  func begin() -> Bool {
    do throws(SystemError) { file = try Descriptor(opening: path, flags: O_RDONLY) } catch {
      self.error = FileError(error, at: path)
      return false
    }
    return true
  }

  /// Returns the next bytes, fewer only at the end; nil if they cannot be read.
  func read(_ count: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var part = [UInt8](repeating: 0, count: count - bytes.count)
      let readCount: Int
      do throws(SystemError) { readCount = try file?.read(into: &part) ?? 0 } catch {
        self.error = FileError(error, at: path)
        return nil
      }
      if readCount == 0 { break }
      bytes += part[..<readCount]
    }
    return bytes
  }
}
