import Glibc

/// An exclusive lock on a folder, held until the value is gone or the process ends.
public struct DirectoryLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock, which is a file `lock` of mode 0600 in the folder, without waiting.
  ///
  /// - Parameter path: The folder.
  /// - Throws: `locked` where another process, or another part of this one, has it; `notFound`, `notDirectory`,
  ///   `symbolicLink`, `noPermission`, `other`.
  public init(directory path: String) throws(FileError) {
    do { file = try Self.lockedFile(in: path) } catch { throw FileError(error, at: path) }
  }

  private static func lockedFile(in path: String) throws(SystemError) -> Descriptor {
    let directory = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
    let file = try Descriptor(
      opening: "lock", in: directory.number, flags: O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
    let number = file.number
    try retrying { flock(number, LOCK_EX | LOCK_NB) }
    return file
  }
}
