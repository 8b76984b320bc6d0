import Glibc

extension Files {
  /// Writes a file so that, whatever fails, either the old contents or the new ones are there.
  ///
  /// A temporary file in the same folder is written and brought to the disk, then renamed, then the folder is brought
  /// to the disk. Only a failure of that last step leaves the new contents in place and throws all the same.
  ///
  /// - Parameters:
  ///   - bytes: The contents.
  ///   - path: The file; a symbolic link is replaced, not followed.
  ///   - mode: The permission bits, whatever the umask is.
  ///   - overwrite: Whether an existing file is replaced.
  ///   - operations: The system calls, for tests.
  /// - Throws: `exists` where overwriting is not allowed; `isDirectory`, `notFound`, `noPermission`, `diskFull`,
  ///   `other`. On a file system without hard links, not overwriting throws `noPermission`.
  public static func writeFileAtomically(
    _ bytes: Span<UInt8>, at path: String, mode: UInt32 = 0o600, overwrite: Bool,
    operations: FileOperations = .system
  ) throws(FileError) {
    _ = try writtenFile(bytes, at: path, mode: mode, overwrite: overwrite, isLocked: false, operations: operations)
  }

  /// Returns a new name for a file that is not whole on the disk yet.
  private static func temporaryName() -> String {
    ".holdfast-\(String(UInt64.random(in: 0...UInt64.max), radix: 16)).tmp"
  }

  /// Removes the unfinished files that interrupted writes have left in a folder. No other process may write there meanwhile.
  ///
  /// - Throws: as ``names(inFolder:limit:)`` and ``removeFile(at:)`` do.
  static func removeTemporaries(inFolder path: String) throws(FileError) {
    for name in try names(inFolder: path, limit: 65_536) where name.hasPrefix(".holdfast-") && name.hasSuffix(".tmp") {
      try removeFile(at: path + "/" + name)
    }
  }

  /// The same, with the new file left open, and locked before it has its name where `isLocked`.
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

  /// Writes a file from an array; see the variant for a span.
  ///
  /// - Parameters:
  ///   - bytes: The contents.
  ///   - path: The file; a symbolic link is replaced, not followed.
  ///   - mode: The permission bits, whatever the umask is.
  ///   - overwrite: Whether an existing file is replaced.
  ///   - operations: The system calls, for tests.
  /// - Throws: As the variant for a span.
  public static func writeFileAtomically(
    _ bytes: [UInt8], at path: String, mode: UInt32 = 0o600, overwrite: Bool, operations: FileOperations = .system
  ) throws(FileError) {
    try writeFileAtomically(bytes.span, at: path, mode: mode, overwrite: overwrite, operations: operations)
  }

  private static func fill(
    _ file: borrowing Descriptor, with bytes: Span<UInt8>, mode: UInt32, operations: FileOperations
  ) throws(SystemError) {
    let number = file.number
    try retrying { fchmod(number, mode) }
    var written = 0
    while written < bytes.count {
      do throws(SystemError) {
        let byteCount = try operations.write(number, bytes.extracting(written..<bytes.count))
        guard byteCount > 0 else { throw SystemError(EIO) }
        written += byteCount
      } catch {
        guard error.number == EINTR else { throw error }
      }
    }
    try operations.synchronize(number)
  }
}
