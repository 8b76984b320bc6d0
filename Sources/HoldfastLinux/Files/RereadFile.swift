import Glibc

/// A small file that is read again and again. It stays open: while the path names the same file and its contents are the same, a
/// reading takes two system calls.
package struct RereadFile: ~Copyable {
  private let path: String
  private let limit: Int
  private let requirements: FileRequirements
  private var opened: Opened?
  /// One byte longer than the contents.
  private var buffer: [UInt8] = []
  /// The contents as of the last reading; empty after a failure.
  package private(set) var bytes: [UInt8] = []
  /// The number of readings at which the file was opened, because the path named another file or the contents had changed.
  package private(set) var openingCount: UInt64 = 0

  /// An open file, with what identifies it and what the requirements were checked against.
  private struct Opened: ~Copyable {
    let descriptor: Descriptor
    let status: stat
  }

  /// Names the file, and opens nothing. For the parameters see ``Files/readFile(at:limit:requirements:)``.
  package init(path: String, limit: Int, requirements: FileRequirements) {
    (self.path, self.limit, self.requirements) = (path, limit, requirements)
  }

  /// Reads the file, and returns whether ``bytes`` are others than before.
  ///
  /// - Throws: the errors of ``Files/readFile(at:limit:requirements:)``.
  package mutating func read() throws(FileError) -> Bool {
    if isUnchanged() { return false }
    let last = bytes
    openingCount += 1
    opened = nil
    bytes = []
    let file = try ReadableFile(path, limit: limit, requirements: requirements)
    bytes = try file.contents(limit: limit, at: path)
    buffer = [UInt8](repeating: 0, count: bytes.count + 1)
    let descriptor = file.intoDescriptor()
    if let status = try? descriptor.status() {
      opened = Opened(descriptor: descriptor, status: status)
    }
    return bytes != last
  }

  private mutating func isUnchanged() -> Bool {
    guard let opened = opened.take() else { return false }
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_dev == opened.status.st_dev,
      status.st_ino == opened.status.st_ino, status.st_mode == opened.status.st_mode,
      status.st_uid == opened.status.st_uid
    else { return false }
    let count = unsafe pread(opened.descriptor.number, &buffer, buffer.count, 0)
    self.opened = consume opened
    guard count == bytes.count else { return false }
    return unsafe memcmp(buffer, bytes, count) == 0
  }
}
