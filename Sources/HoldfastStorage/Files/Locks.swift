import Glibc
import HoldfastLinux

/// A file with a secret that one process uses at a time: the lock is on the file itself, as flock(1) takes it, until the value
/// is gone or the process ends.
package struct LockedFile: ~Copyable, Sendable {
  package let path: String
  /// Holds the lock.
  private var descriptor: Descriptor

  /// Takes the lock without waiting, and lends the contents, of which this only copy is wiped afterwards.
  ///
  /// - Parameters:
  ///   - path: A regular file of this user's, closed to others; no symbolic link.
  ///   - limit: The most bytes there may be.
  ///   - body: Receives the contents.
  /// - Throws: `locked` where another process has the lock, or has just replaced the file; otherwise as
  ///   ``Files/readSecretFile(at:limit:requirements:_:)``.
  package init(path: String, limit: Int, _ body: (Span<UInt8>) -> Void) throws(FileError) {
    let file = try ReadableFile(path, limit: limit, requirements: [.secret, .noSymbolicLink])
    do throws(SystemError) {
      try file.descriptor.lock()
      // Locked too late, it is a file that has lost its name to a newer one.
      guard try file.descriptor.isNamed(path) else { throw SystemError(EWOULDBLOCK) }
    } catch { throw FileError(error, at: path) }
    try file.lend(limit: limit, at: path, body)
    self.path = path
    descriptor = file.intoDescriptor()
  }

  /// Makes a file of mode 0600 where none has its name, and locks it. Throws as
  /// ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  package init(
    creatingAt path: String, _ bytes: Span<UInt8>, operations: FileOperations = .system
  ) throws(FileError) {
    self.path = path
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: false, isLocked: true, operations: operations)
  }

  /// Puts a file with these contents in its place, locked from the start: whatever fails, the old contents or the new ones
  /// are there. Throws as ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  package mutating func replace(with bytes: Span<UInt8>, operations: FileOperations = .system) throws(FileError) {
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: true, isLocked: true, operations: operations)
  }
}

/// An exclusive lock on a folder, held until the value is gone or the process ends.
package struct DirectoryLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock, which is a file `lock` of mode 0600 in the folder, without waiting.
  ///
  /// - Parameter path: The folder.
  /// - Throws: `locked` where another process, or another part of this one, has it; `notFound`, `notDirectory`,
  ///   `noPermission`, `other`. At the path of the file where that cannot be opened, also `symbolicLink`, `isDirectory`,
  ///   `diskFull`.
  package init(directory path: String) throws(FileError) {
    let opened = try Self.openFile(in: path)
    do { try opened.lock() } catch { throw FileError(error, at: path) }
    file = opened
  }

  private static func openFile(in path: String) throws(FileError) -> Descriptor {
    let directory = try openFolder(path)
    do {
      return try Descriptor(
        opening: "lock", in: directory.number, flags: O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
    } catch { throw FileError(error, at: path + "/lock") }
  }

  private static func openFolder(_ path: String) throws(FileError) -> Descriptor {
    do { return try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY) } catch {
      throw FileError(error, at: path)
    }
  }
}

/// Lets the processes that use a folder take turns, by a lock on the folder itself: no file that could be removed.
///
/// Also apart from other values of this type in the same process; not for two threads with the same value.
package final class FolderTurns: Sendable {
  private let directory: Descriptor

  /// - Throws: `notFound`, `notDirectory`, `noPermission`, `other`.
  package init(directory path: String) throws(FileError) {
    do { directory = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY) } catch {
      throw FileError(error, at: path)
    }
  }

  /// Runs `body` once nobody else is in a turn.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: How long to wait for the others, one of which may stand still.
  ///   - failure: What is thrown where that was not enough, or the system refused.
  @discardableResult
  package func take<Result, Failure: Error>(
    timeoutMilliseconds: Int = 10_000, orThrow failure: Failure, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var triesLeft = timeoutMilliseconds
    while flock(directory.number, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR, triesLeft > 0 else { throw failure }
      triesLeft -= 1
      usleep(1000)
    }
    defer { _ = flock(directory.number, LOCK_UN) }
    return try body()
  }
}
