import Glibc

/// An `errno`.
package struct SystemError: Error, Equatable, Sendable {
  /// The number.
  package let number: Int32

  /// Makes an error of a number.
  ///
  /// - Parameter number: An `errno`, such as `ENOSPC`.
  package init(_ number: Int32) {
    self.number = number
  }

  /// The number that the last system call of this thread left in `errno`.
  package static var last: SystemError { SystemError(errno) }

  /// Whether nothing has the name that was looked for.
  package var isAbsence: Bool { number == ENOENT || number == ENOTDIR }
}

/// Repeats a system call for as long as a signal interrupts it; -1 is thrown as `errno`.
@discardableResult
package func retrying<Number: SignedInteger>(_ call: () -> Number) throws(SystemError) -> Number {
  while true {
    let result = call()
    if result != -1 { return result }
    let number = errno
    if number != EINTR { throw SystemError(number) }
  }
}

/// An open file or folder, closed when it goes out of scope.
package struct Descriptor: ~Copyable, Sendable {
  /// The number of the descriptor.
  package let number: Int32

  /// Opens a path; `O_CLOEXEC` is always added.
  package init(opening path: String, flags: Int32, mode: mode_t = 0) throws(SystemError) {
    try self.init(opening: path, in: AT_FDCWD, flags: flags, mode: mode)
  }

  /// Opens a name in an open folder; `O_CLOEXEC` is always added.
  package init(opening name: String, in directory: Int32, flags: Int32, mode: mode_t = 0) throws(SystemError) {
    // A C string would end at the first zero byte and name another file.
    guard !name.utf8.contains(0) else { throw SystemError(EINVAL) }
    number = try retrying { unsafe openat(directory, name, flags | O_CLOEXEC, mode) }
  }

  /// Opens a path that need not be UTF-8 and has no zero byte; `O_CLOEXEC` is always added.
  package init(opening path: [UInt8], flags: Int32) throws(SystemError) {
    guard !path.contains(0) else { throw SystemError(EINVAL) }
    let terminated = path.map { CChar(bitPattern: $0) } + [0]
    number = try retrying { unsafe open(terminated, flags | O_CLOEXEC) }
  }

  /// Takes over a descriptor that a call has just opened; where it is -1, the call's `errno` is thrown.
  package init(taking number: Int32) throws(SystemError) {
    guard number >= 0 else { throw SystemError.last }
    self.number = number
  }

  /// Creates a file without a name in a folder, mode 0600, for reading and writing.
  package static func unnamedFile(in directory: String) throws(SystemError) -> Descriptor {
    let folder = try Descriptor(opening: directory, flags: O_RDONLY | O_DIRECTORY)
    let name = Files.temporaryName()
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
    let file = try Descriptor(opening: name, in: folder.number, flags: flags, mode: 0o600)
    try retrying { unsafe unlinkat(folder.number, name, 0) }
    return file
  }

  /// Duplicates an open descriptor.
  package init(sameAs other: Int32) throws(SystemError) {
    number = try retrying { fcntl(other, F_DUPFD_CLOEXEC, 0) }
  }

  deinit {
    // close(2) frees the number even when it is interrupted, so it is never called twice.
    _ = close(number)
  }

  /// Kind, owner, mode and size.
  package func status() throws(SystemError) -> stat {
    var status = stat()
    try retrying { unsafe fstat(number, &status) }
    return status
  }

  /// Whether the file that is open is the one at `path`.
  package func isNamed(_ path: String) throws(SystemError) -> Bool {
    let status = try status()
    var named = stat()
    try retrying { unsafe lstat(path, &named) }
    return status.st_dev == named.st_dev && status.st_ino == named.st_ino
  }

  /// Takes the lock on the file that one process has at a time, without waiting; `EWOULDBLOCK` where another one has it.
  package func lock() throws(SystemError) {
    try retrying { flock(number, LOCK_EX | LOCK_NB) }
  }

  /// Fills a part of a buffer; 0 is the end of the file.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try retrying { unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
  }

  /// Fills the beginning of an array; 0 is the end of the file.
  package func read(into bytes: inout [UInt8]) throws(SystemError) -> Int {
    try retrying { unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) } }
  }

  /// Fills the beginning of a span from `offset` in the file on, or from the current place for nil; 0 is the end of the file.
  package func read(into bytes: inout MutableSpan<UInt8>, at offset: UInt64? = nil) throws(SystemError) -> Int {
    try retrying {
      unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let offset else { return unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
        return unsafe pread(number, buffer.baseAddress, buffer.count, off_t(truncatingIfNeeded: offset))
      }
    }
  }

  /// Writes all of `bytes`.
  package func write(_ bytes: Span<UInt8>) throws(SystemError) {
    var rest = bytes
    while !rest.isEmpty {
      let written = try retrying {
        unsafe rest.withUnsafeBufferPointer { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
      }
      rest = rest.extracting(written..<rest.count)
    }
  }

  /// Makes what was written durable.
  package func synchronize() throws(SystemError) {
    try retrying { fsync(number) }
  }
}
