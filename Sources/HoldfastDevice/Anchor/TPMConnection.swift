import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// An open connection to a TPM: a device file of the kernel, or a Unix socket that takes bare commands.
struct TPMConnection: ~Copyable {
  private let descriptor: CInt
  private let deadline: Deadline

  /// Opens the TPM at `path`.
  ///
  /// - Throws: `notThere`, `noPermission`, `silent`.
  init(path: String, deadline: Deadline) throws(CounterFault) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw CounterFault(errno: errno) }
    switch status.st_mode & S_IFMT {
    case S_IFCHR: descriptor = try Self.openDevice(path)
    case S_IFSOCK: descriptor = try Self.connectSocket(path, deadline)
    default: throw .notThere
    }
    self.deadline = deadline
  }

  deinit {
    close(descriptor)
  }

  /// Sends a command and reads the response, at most as many bytes as `answer` has room for.
  ///
  /// - Throws: `silent` once the deadline has passed or the connection breaks, `malformed` for an invalid response.
  func exchange<let capacity: Int>(
    _ command: Span<UInt8>, into answer: inout ByteBuffer<capacity>
  ) throws(CounterFault) {
    try send(command)
    try receive(into: &answer)
  }

  private func send(_ command: Span<UInt8>) throws(CounterFault) {
    var sent = 0
    while sent < command.count {
      try wait(for: POLLOUT)
      let rest = command.extracting(sent...)
      // A closed socket must not raise SIGPIPE, and send(2), which has a flag for that, works only on sockets. A device file
      // takes the whole command at once.
      let count = unsafe rest.withUnsafeBytes { bytes in
        let count = unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
        guard count < 0, errno == ENOTSOCK else { return count }
        return unsafe write(descriptor, bytes.baseAddress, bytes.count)
      }
      if count > 0 { sent += count } else { try Self.goOn(after: errno) }
    }
  }

  private func receive<let capacity: Int>(into answer: inout ByteBuffer<capacity>) throws(CounterFault) {
    answer.removeAll()
    do throws(EncodingFault) { try answer.appendZeros(capacity) } catch { throw .malformed }
    var received = 0
    while true {
      try wait(for: POLLIN)
      var span = answer.mutableBytes
      let count = unsafe span.withUnsafeMutableBytes { bytes in
        unsafe read(descriptor, bytes.baseAddress?.advanced(by: received), bytes.count - received)
      }
      guard count != 0 else { throw received == 0 ? .silent : .malformed }
      guard count > 0 else {
        try Self.goOn(after: errno)
        continue
      }
      received += count
      guard received >= TPMResponse.headByteCount else { continue }
      guard let byteCount = TPMResponse.byteCount(of: answer.bytes, limit: capacity) else { throw .malformed }
      if received >= byteCount { break }
    }
    answer.truncate(to: received)
  }

  /// Waits until the descriptor is ready for `events` or the peer has hung up.
  ///
  /// - Throws: `silent` once the deadline has passed.
  private func wait(for events: CInt) throws(CounterFault) {
    var entry = pollfd(fd: descriptor, events: CShort(events), revents: 0)
    while true {
      let count = unsafe poll(&entry, 1, CInt(clamping: deadline.remainingMilliseconds))
      if count > 0 { return }
      guard count < 0, errno == EINTR, !deadline.hasPassed else { throw .silent }
    }
  }

  private static func goOn(after number: CInt) throws(CounterFault) {
    guard number == EINTR || number == EAGAIN else { throw CounterFault(errno: number) }
  }

  /// Opens the device file without blocking: the kernel takes the command at once, and reading its response has a deadline.
  private static func openDevice(_ path: String) throws(CounterFault) -> CInt {
    let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw CounterFault(errno: errno) }
    return descriptor
  }

  private static func connectSocket(_ path: String, _ deadline: Deadline) throws(CounterFault) -> CInt {
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw CounterFault(errno: errno) }
    let number = connect(descriptor, to: path, deadline)
    guard number == 0 else {
      close(descriptor)
      throw CounterFault(errno: number)
    }
    return descriptor
  }

  /// Connects. A full queue of the socket makes connecting wait, so it has a separate time limit. Returns 0 or errno.
  private static func connect(_ descriptor: CInt, to path: String, _ deadline: Deadline) -> CInt {
    let milliseconds = max(deadline.remainingMilliseconds, 1)
    var limit = timeval(tv_sec: milliseconds / 1000, tv_usec: milliseconds % 1000 * 1000)
    var address = sockaddr_un()
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < room else { return ENAMETOOLONG }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    guard
      unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size)) == 0
    else { return errno }
    while true {
      let result = unsafe withUnsafePointer(to: &address) { address in
        unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      if result == 0 { break }
      guard errno == EINTR else { return errno }
    }
    return fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno
  }
}

extension CounterFault {
  /// Makes the fault for an error number from opening or using the connection.
  fileprivate init(errno number: CInt) {
    self =
      switch number {
      case EACCES, EPERM: .noPermission
      case EAGAIN, ETIMEDOUT, EPIPE, ECONNRESET, EIO: .silent
      default: .notThere
      }
  }
}
