import Glibc

/// An open regular file that meets the requirements of its reader.
struct ReadableFile: ~Copyable {
  let descriptor: Descriptor
  /// The size when it was opened; 0 for the files of `/proc`.
  let byteCount: Int

  init(_ path: String, limit: Int, requirements: FileRequirements) throws(FileError) {
    let opened = try Self.open(path, followsSymbolicLinks: !requirements.contains(.noSymbolicLink))
    let status = try Self.status(of: opened, at: path)
    let size = Int(status.st_size)
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw FileError(.isDirectory, at: path)
    default: throw FileError(.notRegular, at: path)
    }
    if let fault = requirements.check(status) { throw FileError(fault, at: path) }
    guard size <= limit else { throw FileError(.tooLarge, at: path) }
    byteCount = size
    descriptor = opened
  }

  private static func open(_ path: String, followsSymbolicLinks: Bool) throws(FileError) -> Descriptor {
    // Not blocking: opening a FIFO would wait for a writer.
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (followsSymbolicLinks ? 0 : O_NOFOLLOW)
    do { return try Descriptor(opening: path, flags: flags) } catch { throw FileError(error, at: path) }
  }

  private static func status(of descriptor: borrowing Descriptor, at path: String) throws(FileError) -> stat {
    do { return try descriptor.status() } catch { throw FileError(error, at: path) }
  }
}
