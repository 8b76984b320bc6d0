import CReadOnlyDisk
import Glibc
import HoldfastLinux
import Synchronization

/// A file system in memory that really is read-only when it is told to be. Only the thread that a test is given sees it.
///
/// Mounting needs a right (CAP_SYS_ADMIN) that root may lack in a container: see ``isPossible``.
package struct ReadOnlyDisk: Sendable {
  /// The system refused to mount the file system, or to change it.
  package struct Refused: Error {
    package let number: Int32
  }

  /// The folder at which the file system is mounted.
  package let folder: String

  /// Whether this process may mount a file system.
  package static let isPossible: Bool = (try? with { _ in }) != nil

  /// Runs `body` on a thread that sees a new, empty file system, which is writable at first. It is gone with the thread.
  package static func with(_ body: @escaping @Sendable (ReadOnlyDisk) throws -> Void) throws {
    var template = Array("/tmp/holdfast-disk-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Refused(number: errno) }
    let disk = ReadOnlyDisk(folder: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    defer { unsafe rmdir(disk.folder) }
    let outcome = Outcome()
    try Thread {
      do {
        try check(unsafe read_only_disk_mount(disk.folder))
        try body(disk)
      } catch { outcome.error.withLock { $0 = error } }
    }.join()
    if let error = outcome.error.withLock({ $0 }) { throw error }
  }

  /// Runs `body` while nothing can be written. No file of the disk may be open for writing when it begins.
  package func whileReadOnly<Result>(_ body: () throws -> Result) throws -> Result {
    try Self.check(unsafe read_only_disk_set(folder, 1))
    let result = Swift.Result { try body() }
    try Self.check(unsafe read_only_disk_set(folder, 0))
    return try result.get()
  }

  private static func check(_ number: Int32) throws {
    guard number == 0 else { throw Refused(number: number) }
  }

  private final class Outcome: Sendable {
    let error = Mutex<(any Error)?>(nil)
  }
}
