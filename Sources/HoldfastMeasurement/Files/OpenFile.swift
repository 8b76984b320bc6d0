import CHost
import Glibc

/// An open file; closed when it goes out of scope.
struct OpenFile: ~Copyable {
  let descriptor: Int32

  /// Opens `path` for reading.
  init(_ path: String, flags: Int32 = O_RDONLY) throws(SystemFault) {
    descriptor = unsafe open(path, flags | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemFault.last }
  }

  /// Opens a path that need not be UTF-8.
  init(_ path: [UInt8], flags: Int32) throws(SystemFault) {
    let terminated = path.map { CChar(bitPattern: $0) } + [0]
    descriptor = unsafe open(terminated, flags | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemFault.last }
  }

  /// Takes over a descriptor that a call has just opened, or its `errno`.
  init(taking descriptor: Int32) throws(SystemFault) {
    self.descriptor = descriptor
    guard descriptor >= 0 else { throw SystemFault.last }
  }

  /// Another descriptor for what `descriptor` is open for.
  init(sameAs descriptor: Int32) throws(SystemFault) {
    self.descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard self.descriptor >= 0 else { throw SystemFault.last }
  }

  /// Opens `name` in `folder`, never following a link.
  init(
    _ name: String, in folder: borrowing OpenFile, flags: Int32 = O_RDONLY, mode: mode_t = 0
  ) throws(SystemFault) {
    descriptor = unsafe openat(folder.descriptor, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)
    guard descriptor >= 0 else { throw SystemFault.last }
  }

  deinit { close(descriptor) }

  /// Reads into `chunk` and says how many bytes; 0 at the end.
  borrowing func read(into chunk: inout MutableSpan<UInt8>) throws(SystemFault) -> Int {
    let file = descriptor
    return unsafe try chunk.filled { unsafe Glibc.read(file, $0, $1) }
  }

  /// Reads into `chunk` from `offset` on and says how many bytes; 0 at the end.
  borrowing func read(into chunk: inout MutableSpan<UInt8>, at offset: UInt64) throws(SystemFault) -> Int {
    let file = descriptor
    return unsafe try chunk.filled { unsafe pread(file, $0, $1, off_t(truncatingIfNeeded: offset)) }
  }

  /// Writes all of `bytes`.
  borrowing func write(_ bytes: Span<UInt8>) throws(SystemFault) {
    var rest = bytes
    while !rest.isEmpty {
      let written = unsafe rest.withUnsafeBufferPointer { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 && errno == EINTR { continue }
      guard written >= 0 else { throw SystemFault.last }
      rest = rest.extracting(written..<rest.count)
    }
  }

  /// Makes what was written durable.
  borrowing func synchronize() throws(SystemFault) {
    guard fsync(descriptor) == 0 else { throw SystemFault.last }
  }

  /// What the system knows of the file.
  borrowing func status() throws(SystemFault) -> stat {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw SystemFault.last }
    return status
  }
}

/// The magic number of the file system of an open file or folder.
func fileSystemType(of descriptor: Int32) throws(SystemFault) -> UInt64 {
  let type = holdfast_file_system_type(descriptor)
  guard type != 0 else { throw SystemFault.last }
  return type
}

/// A system call failed with this error number.
struct SystemFault: Error {
  let code: Int32

  static var last: SystemFault { SystemFault(code: errno) }

  /// Whether there is nothing of that name.
  var isAbsence: Bool { code == ENOENT || code == ENOTDIR }
}

extension MutableSpan<UInt8> {
  /// Lets `call` fill the bytes from the start, again when a signal came between.
  fileprivate mutating func filled(
    by call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemFault) -> Int {
    while true {
      let count = unsafe withUnsafeMutableBytes { unsafe call($0.baseAddress, $0.count) }
      if count >= 0 { return count }
      guard errno == EINTR else { throw SystemFault.last }
    }
  }
}
