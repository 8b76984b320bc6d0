import Glibc

/// A file with a secret that only one process uses at a time.
///
/// The lock is on the file itself, as flock(1) takes it, and lasts until this value is released or the process ends.
package struct LockedFile: ~Copyable, Sendable {
  /// The path of the file.
  package let path: String
  /// The open file, which holds the lock.
  private var descriptor: Descriptor

  /// Takes the lock without waiting, and lends the contents. The only copy of the contents is wiped afterwards.
  ///
  /// - Parameters:
  ///   - path: A regular file that belongs to this user and is not accessible to others; not a symbolic link.
  ///   - limit: The maximum byte count.
  ///   - body: Receives the contents.
  /// - Throws: `locked` if another process holds the lock, or has just replaced the file; otherwise the errors of
  ///   ``Files/readSecretFile(at:limit:requirements:_:)``.
  package init(path: String, limit: Int, _ body: (Span<UInt8>) -> Void) throws(FileError) {
    let file = try ReadableFile(path, limit: limit, requirements: [.secret, .noSymbolicLink])
    do throws(SystemError) {
      try file.descriptor.lock()
      // If the lock came too late, another process has already replaced the file at this name.
      guard try file.descriptor.isNamed(path) else { throw SystemError(EWOULDBLOCK) }
    } catch { throw FileError(error, at: path) }
    try file.lend(limit: limit, at: path, body)
    self.path = path
    descriptor = file.intoDescriptor()
  }

  /// Creates a file with mode 0600 at a free path, and locks it.
  ///
  /// - Throws: The errors of ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  package init(
    creatingAt path: String, _ bytes: Span<UInt8>, operations: FileOperations = .system
  ) throws(FileError) {
    self.path = path
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: false, isLocked: true, operations: operations)
  }

  /// Replaces the file with one that has these contents and is locked from its creation. After any failure, the path has either
  /// the old contents or the new ones.
  ///
  /// - Throws: The errors of ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  package mutating func replace(with bytes: Span<UInt8>, operations: FileOperations = .system) throws(FileError) {
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: true, isLocked: true, operations: operations)
  }
}

/// An exclusive lock on a folder, held until this value is released or the process ends.
package struct DirectoryLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock without waiting. The lock is on a file `lock` with mode 0600 in the folder.
  ///
  /// - Parameter path: The folder.
  /// - Throws: `locked` if another process, or another part of this one, holds it; `notFound`, `notDirectory`,
  ///   `noPermission`, `other`. If the file cannot be opened, the error is at the file's path, and also `symbolicLink`,
  ///   `isDirectory`, `diskFull`.
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

/// A lock by which the processes that use a folder take turns. It is on the folder itself, because a lock file could be removed.
///
/// It also separates different values of this type in the same process, but not two threads that share one value.
package final class FolderTurns: Sendable {
  private let directory: Descriptor

  /// Opens the folder.
  ///
  /// - Throws: `notFound`, `notDirectory`, `noPermission`, `other`.
  package init(directory path: String) throws(FileError) {
    do { directory = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY) } catch {
      throw FileError(error, at: path)
    }
  }

  /// Runs `body` while no other process is in a turn.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: The maximum wait for the other processes, one of which may have stopped.
  ///   - failure: The error that is thrown after that time, or if the system refuses the lock.
  @discardableResult
  package func take<Result: ~Copyable, Failure: Error>(
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
