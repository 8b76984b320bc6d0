import Glibc

/// An open file or folder, closed in the end.
struct Descriptor: ~Copyable, Sendable {
  let number: Int32

  /// Opens a path; `O_CLOEXEC` is always added.
  init(opening path: String, flags: Int32, mode: mode_t = 0) throws(SystemError) {
    try self.init(opening: path, in: AT_FDCWD, flags: flags, mode: mode)
  }

  /// Opens a name in an open folder; `O_CLOEXEC` is always added.
  init(opening name: String, in directory: Int32, flags: Int32, mode: mode_t = 0) throws(SystemError) {
    // A C string would end at the first zero byte and name another file.
    guard !name.utf8.contains(0) else { throw SystemError(EINVAL) }
    number = try retrying { unsafe openat(directory, name, flags | O_CLOEXEC, mode) }
  }

  deinit {
    _ = close(number)
  }

  /// Kind, owner, mode and size.
  func status() throws(SystemError) -> stat {
    var status = stat()
    try retrying { unsafe fstat(number, &status) }
    return status
  }

  /// Whether the file that is open is the one at `path`.
  func isNamed(_ path: String) throws(SystemError) -> Bool {
    let status = try status()
    var named = stat()
    try retrying { unsafe lstat(path, &named) }
    return status.st_dev == named.st_dev && status.st_ino == named.st_ino
  }

  /// Takes the lock on the file that one process has at a time, without waiting; `EWOULDBLOCK` where another one has it.
  func lock() throws(SystemError) {
    try retrying { flock(number, LOCK_EX | LOCK_NB) }
  }

  /// Fills a part of a buffer; 0 is the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try retrying { unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
  }

  /// Fills the beginning of an array; 0 is the end of the file.
  func read(into bytes: inout [UInt8]) throws(SystemError) -> Int {
    try retrying { unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) } }
  }
}
