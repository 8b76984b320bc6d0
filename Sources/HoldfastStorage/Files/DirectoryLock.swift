import Glibc

/// An exclusive lock on a folder, held until the value is gone or the process ends.
public struct DirectoryLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock, which is a file `lock` of mode 0600 in the folder, without waiting.
  ///
  /// - Parameter path: The folder.
  /// - Throws: `locked` where another process, or another part of this one, has it; `notFound`, `notDirectory`,
  ///   `noPermission`, `other`. At the path of the file where that cannot be opened, also `symbolicLink`, `isDirectory`,
  ///   `diskFull`.
  public init(directory path: String) throws(FileError) {
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
