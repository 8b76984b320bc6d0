import CHost
import Glibc

/// A namespace for files and folders of the local user: careful reads, atomic writes, private folders.
package enum Files {
  /// Creates a folder with mode 0700, or checks the existing one. Its name is on the disk when this returns.
  ///
  /// - Parameters:
  ///   - path: The folder; its parent folder must exist.
  ///   - isBackedUp: Whether a copy of the folder is of use. Otherwise a new one gets the attribute that asks backup tools to leave it
  ///     out, if the file system has one.
  /// - Returns: Whether the folder is new.
  /// - Throws: `symbolicLink`, `notDirectory`, `wrongOwner` or `tooOpen` if the path exists and is not a private folder of
  ///   this user; `notFound`, `noPermission`, `diskFull`, `other`.
  @discardableResult
  package static func createPrivateDirectory(
    at path: String, isBackedUp: Bool = true, operations: FileOperations = .system
  ) throws(FileError) -> Bool {
    let place = try FilePath(FilePath.withoutTrailingSlashes(path))
    let status: stat
    do {
      let parent = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      let isNew = try makeDirectory(place.name, in: parent)
      // Also for an existing folder: the process that created it may have been stopped before this step.
      try operations.synchronize(parent.number)
      if isNew, isBackedUp { return true }
      let directory = try Descriptor(opening: place.name, in: parent.number, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      if isNew {
        // Many file systems have no such attribute, and none needs it.
        _ = holdfast_leave_out_of_backups(directory.number)
        return true
      }
      status = try directory.status()
    } catch {
      throw FileError(error, at: path)
    }
    if let fault = FileRequirements.secret.check(status) { throw FileError(fault, at: path) }
    return false
  }

  /// Creates a folder; returns false if the name is taken, and throws `ELOOP` if a symbolic link has it.
  private static func makeDirectory(_ name: String, in parent: borrowing Descriptor) throws(SystemError) -> Bool {
    if unsafe mkdirat(parent.number, name, 0o700) == 0 { return true }
    guard errno == EEXIST else { throw SystemError(errno) }
    // Only opening it would not distinguish a symbolic link from a file.
    var entry = stat()
    try retrying { unsafe fstatat(parent.number, name, &entry, AT_SYMLINK_NOFOLLOW) }
    if entry.st_mode & S_IFMT == S_IFLNK { throw SystemError(ELOOP) }
    return false
  }

  /// Removes a file. The removal is durable when this returns.
  ///
  /// - Parameter path: The file. A symbolic link itself is removed.
  /// - Throws: `notFound`, `isDirectory`, `noPermission`, `other`.
  package static func removeFile(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(path)
    do {
      let directory = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      try retrying { unsafe unlinkat(directory.number, place.name, 0) }
      try operations.synchronize(directory.number)
    } catch {
      throw FileError(error, at: path)
    }
  }

  /// Overwrites a file with zeros, then removes it. The removal is durable when this returns.
  ///
  /// Flash disks, and file systems that keep journals or copies, may write the zeros to another place.
  ///
  /// - Parameter path: The file, at most 16 MiB of which are overwritten. What cannot be overwritten is only removed.
  /// - Throws: `notFound`, `isDirectory`, `noPermission`, `other`.
  package static func eraseFile(at path: String, operations: FileOperations = .system) throws(FileError) {
    do throws(SystemError) {
      let file = try Descriptor(opening: path, flags: O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      let status = try file.status()
      if status.st_mode & S_IFMT == S_IFREG {
        let zeros = [UInt8](repeating: 0, count: min(Int(status.st_size), 16 << 20))
        try operations.writeAll(zeros.span, to: file.number)
        try operations.synchronize(file.number)
      }
    } catch {
      // A file that cannot be overwritten, such as a link, a read-only file or one on a full disk that copies, is removed nevertheless.
      guard error.number != ENOENT else { throw FileError(error, at: path) }
    }
    try removeFile(at: path, operations: operations)
  }
}

extension Files {
  /// Reads a whole file.
  ///
  /// - Parameters:
  ///   - path: A regular file; those of `/proc` count as regular.
  ///   - limit: The maximum byte count. It also applies while reading, so a file that grows throws `tooLarge`.
  ///   - requirements: The conditions that are checked on the open file before any byte is read.
  /// - Returns: The contents.
  /// - Throws: `tooLarge`, `isDirectory`, `notRegular`, `symbolicLink`, `tooOpen`, `wrongOwner`, `notFound`,
  ///   `noPermission`, `other`.
  package static func readFile(
    at path: String, limit: Int, requirements: FileRequirements = []
  ) throws(FileError) -> [UInt8] {
    let file = try ReadableFile(path, limit: limit, requirements: requirements)
    return try file.contents(limit: limit, at: path)
  }

  /// Lends the contents of a file with a secret, and wipes their only copy afterwards, also after an error.
  ///
  /// - Parameters:
  ///   - path: A regular file.
  ///   - limit: The maximum byte count. The buffer never moves: a file that grows while it is read is `tooLarge`,
  ///     and so is a file of `/proc` above 64 KiB.
  ///   - requirements: The conditions that are checked before any byte is read; by default the file must belong to this user
  ///     and must not be accessible to others.
  ///   - body: Receives the contents. An operation that can fail returns a `Result`.
  /// - Returns: The result of the body.
  /// - Throws: The errors of `readFile`.
  package static func readSecretFile<Result: ~Copyable>(
    at path: String, limit: Int, requirements: FileRequirements = .secret, _ body: (Span<UInt8>) -> Result
  ) throws(FileError) -> Result {
    let file = try ReadableFile(path, limit: limit, requirements: requirements)
    return try file.lend(limit: limit, at: path, body)
  }

  /// Writes a file atomically: after any failure, the path has either the old contents or the new ones.
  ///
  /// A temporary file in the same folder is written and synchronised, then renamed, then the folder is synchronised. Only a
  /// failure of that last step leaves the new contents in place and still throws.
  ///
  /// - Parameters:
  ///   - bytes: The contents.
  ///   - path: The file; a symbolic link is replaced, not followed.
  ///   - mode: The permission bits, independent of the umask.
  ///   - overwrite: Whether an existing file is replaced.
  ///   - operations: The system calls, for tests.
  /// - Throws: `exists` if the file exists and overwriting is not allowed; `isDirectory`, `notFound`, `noPermission`,
  ///   `diskFull`, `other`. On a file system without hard links, a write without overwriting throws `noPermission`.
  package static func writeFileAtomically(
    _ bytes: Span<UInt8>, at path: String, mode: UInt32 = 0o600, overwrite: Bool,
    operations: FileOperations = .system
  ) throws(FileError) {
    _ = try writtenFile(bytes, at: path, mode: mode, overwrite: overwrite, isLocked: false, operations: operations)
  }

  /// Returns a new name for a file whose contents are not completely on the disk yet.
  static func temporaryName() -> String {
    ".holdfast-\(String(UInt64.random(in: 0...UInt64.max), radix: 16)).tmp"
  }

  /// Removes the unfinished files that interrupted writes have left in a folder. No other process may write there meanwhile.
  ///
  /// - Throws: The errors of ``names(inFolder:limit:)`` and ``removeFile(at:)``.
  package static func removeTemporaries(inFolder path: String) throws(FileError) {
    for name in try names(inFolder: path, limit: 65_536) where name.hasPrefix(".holdfast-") && name.hasSuffix(".tmp") {
      try removeFile(at: path + "/" + name)
    }
  }

  /// Writes a file atomically and returns it open. If `isLocked` is true, the file is locked before it gets its name.
  static func writtenFile(
    _ bytes: Span<UInt8>, at path: String, mode: UInt32, overwrite: Bool, isLocked: Bool, operations: FileOperations
  ) throws(FileError) -> Descriptor {
    let place = try FilePath(path)
    do throws(SystemError) {
      let directory = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      let temporaryName = temporaryName()
      let file = try Descriptor(
        opening: temporaryName, in: directory.number, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
      do throws(SystemError) {
        try fill(file, with: bytes, mode: mode, operations: operations)
        if isLocked { try file.lock() }
        try operations.rename(directory.number, temporaryName, place.name, overwrite)
      } catch {
        _ = unsafe unlinkat(directory.number, temporaryName, 0)
        throw error
      }
      try operations.synchronize(directory.number)
      return file
    } catch {
      throw FileError(error, at: path)
    }
  }

  /// Writes an array to a file atomically; see the variant for a span.
  ///
  /// - Parameters:
  ///   - bytes: The contents.
  ///   - path: The file; a symbolic link is replaced, not followed.
  ///   - mode: The permission bits, independent of the umask.
  ///   - overwrite: Whether an existing file is replaced.
  ///   - operations: The system calls, for tests.
  /// - Throws: The errors of the variant for a span.
  package static func writeFileAtomically(
    _ bytes: [UInt8], at path: String, mode: UInt32 = 0o600, overwrite: Bool, operations: FileOperations = .system
  ) throws(FileError) {
    try writeFileAtomically(bytes.span, at: path, mode: mode, overwrite: overwrite, operations: operations)
  }

  private static func fill(
    _ file: borrowing Descriptor, with bytes: Span<UInt8>, mode: UInt32, operations: FileOperations
  ) throws(SystemError) {
    let number = file.number
    try retrying { fchmod(number, mode) }
    try operations.writeAll(bytes, to: number)
    try operations.synchronize(number)
  }
}
