import Glibc

/// A file that is written piece by piece. It gets its name only when it is complete and on the disk; until then, and after any
/// failure, nothing has that name.
package struct UnfinishedFile: ~Copyable {
  private let path: String
  private let place: FilePath
  private let directory: Descriptor
  private let file: Descriptor
  /// The name until it is finished; nil for a file without any name, of which nothing stays if the process is killed.
  private let temporaryName: String?
  private let operations: FileOperations
  private var isFinished = false

  /// Creates an empty file without a lasting name, mode 0600.
  ///
  /// - Throws: `notFound`, `noPermission`, `isDirectory`, `diskFull`, `other`.
  package init(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(path)
    let directory: Descriptor
    do throws(SystemError) { directory = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY) } catch
    {
      throw FileError(error, at: path)
    }
    var name: String?
    do throws(SystemError) {
      if let unnamed = try Self.unnamedFile(in: directory) {
        file = unnamed
      } else {
        let made = Files.temporaryName()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
        file = try Descriptor(opening: made, in: directory.number, flags: flags, mode: 0o600)
        name = made
      }
    } catch { throw FileError(error, at: path) }
    (self.path, self.place, temporaryName, self.operations) = (path, place, name, operations)
    self.directory = directory
  }

  deinit {
    if !isFinished, let temporaryName { _ = unsafe unlinkat(directory.number, temporaryName, 0) }
  }

  /// Creates a file without a name; returns nil if the file system has none, or if `/proc`, through which it gets a name, is
  /// missing.
  ///
  /// Source: open(2), `O_TMPFILE`.
  private static func unnamedFile(in directory: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    guard unsafe access("/proc/self/fd", X_OK) == 0 else { return nil }
    do throws(SystemError) {
      return try Descriptor(opening: ".", in: directory.number, flags: O_WRONLY | temporaryFile, mode: 0o600)
    } catch {
      // Old kernels do not know the flag, and then refuse to write a folder.
      guard [EOPNOTSUPP, EISDIR, EINVAL, ENOENT].contains(error.number) else { throw error }
      return nil
    }
  }

  /// `O_TMPFILE`, a macro that Swift does not import. Source: Linux, include/uapi/asm-generic/fcntl.h.
  private static let temporaryFile: Int32 = 0o20_000_000 | O_DIRECTORY

  /// Appends bytes.
  ///
  /// - Throws: `diskFull`, `other`.
  package func append(_ bytes: Span<UInt8>) throws(FileError) {
    do throws(SystemError) { try operations.writeAll(bytes, to: file.number) } catch {
      throw FileError(error, at: path)
    }
  }

  /// Brings the file to the disk and gives it its name, which no file may have yet.
  ///
  /// - Throws: `exists`, `diskFull`, `noPermission` on a file system without hard links, `other`.
  package mutating func finish() throws(FileError) {
    do throws(SystemError) {
      try operations.synchronize(file.number)
      if let temporaryName {
        try operations.rename(directory.number, temporaryName, place.name, false)
      } else {
        let link = "/proc/self/fd/\(file.number)"
        // A hard link never replaces anything.
        guard unsafe linkat(AT_FDCWD, link, directory.number, place.name, AT_SYMLINK_FOLLOW) == 0 else {
          throw SystemError.last
        }
      }
      isFinished = true
      try operations.synchronize(directory.number)
    } catch { throw FileError(error, at: path) }
  }
}
