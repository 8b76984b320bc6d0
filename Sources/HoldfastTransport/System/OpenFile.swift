import CBlueZ
import Glibc
import HoldfastLinux

/// An open file descriptor. It is closed exactly once, when the last owner releases this object.
///
/// It is non-blocking and closed on exec; the code that opens it sets both.
package final class OpenFile: Sendable {
  package let descriptor: CInt

  /// Takes over `descriptor`, which must be open and have no other owner.
  package init(taking descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    // close(2) frees the number even when it answers EINTR, so it is never called twice.
    close(descriptor)
  }

  /// The identity of the file that a path names. It shows whether another process has put a different file there, which is left
  /// unchanged.
  package struct Identity: Equatable {
    package let device: dev_t
    package let inode: ino_t
    package let mode: mode_t

    package var isSocket: Bool {
      mode & S_IFMT == S_IFSOCK
    }

    /// Examines `path` itself, not the target of a symbolic link; returns nil if the file cannot be examined.
    package init?(path: String) {
      var status = stat()
      guard unsafe lstat(path, &status) == 0 else { return nil }
      device = status.st_dev
      inode = status.st_ino
      mode = status.st_mode
    }
  }
}

extension Framing {
  /// The second argument of socket(2): the type, non-blocking, closed on exec.
  var socketType: CInt {
    let type =
      switch self {
      case .packets: SOCK_SEQPACKET
      case .stream: SOCK_STREAM
      }
    return CInt(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
  }
}

extension OpenFile {
  /// Creates a socket of the local domain that is not bound.
  package static func unixSocket(framing: Framing) throws(TransportError) -> OpenFile {
    OpenFile(taking: try checked(socket(AF_UNIX, framing.socketType, 0)))
  }

  /// Creates two sockets that are connected to each other.
  package static func socketPair(framing: Framing) throws(TransportError) -> (OpenFile, OpenFile) {
    var ends: InlineArray<2, CInt> = [-1, -1]
    var span = ends.mutableSpan
    try checked(
      unsafe span.withUnsafeMutableBufferPointer { unsafe socketpair(AF_UNIX, framing.socketType, 0, $0.baseAddress) })
    return (OpenFile(taking: ends[0]), OpenFile(taking: ends[1]))
  }

  /// Binds the socket to `path`. Returns 0, or the value of errno. Source: bind(2).
  package func bind(toPath path: String) -> CInt {
    unsafe withUnixAddress(of: path) { unsafe Glibc.bind(descriptor, $0, $1) }
  }

  /// Connects the socket to `path`. Returns 0, or the value of errno. Source: connect(2).
  package func connect(toPath path: String) -> CInt {
    while true {
      let code = unsafe withUnixAddress(of: path) { unsafe Glibc.connect(descriptor, $0, $1) }
      if code != EINTR { return code }
    }
  }

  /// Begins to listen. A backlog that is negative, or above the system's bound, is that bound. Source: listen(2).
  package func listen(backlog: Int) throws(TransportError) {
    try checked(Glibc.listen(descriptor, CInt(clamping: backlog)))
  }

  /// Returns the next waiting peer; nil if none waits.
  ///
  /// The C library's module omits accept4(2). Therefore a program that another thread starts can inherit the descriptor in the
  /// moment before it is set to close on exec.
  package func acceptPeer() throws(TransportError) -> OpenFile? {
    while true {
      let peer = accept(descriptor, nil, nil)
      if peer >= 0 {
        let file = OpenFile(taking: peer)
        try checked(fcntl(peer, F_SETFD, FD_CLOEXEC))
        try checked(fcntl(peer, F_SETFL, O_NONBLOCK))
        return file
      }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EAGAIN: return nil
      default: throw TransportError(errno: errno)
      }
    }
  }

  /// Calls `body` with the address of the socket at `path`, which has at most 107 bytes. Returns 0, or the value of errno.
  private func withUnixAddress(of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let byteCount = socklen_t(MemoryLayout<sockaddr_un>.size)
    return unsafe withUnsafePointer(to: &address) { address in
      let result = unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, byteCount) }
      return result == 0 ? 0 : errno
    }
  }
}

/// The result of a wait.
package enum WaitOutcome {
  /// The file is ready, or has an error or hang-up to report.
  case ready
  case timedOut
  /// The signal was raised first.
  case interrupted
}

extension OpenFile {
  /// The flag POLLRDHUP of poll(2), which the C library's module omits.
  private static let peerHasClosed: CShort = 0x2000

  /// Waits for `events` of poll(2) until `deadline`, or until `wakeUp` is raised.
  package func wait(for events: CInt, until deadline: Deadline, unless wakeUp: WakeUp?) throws(TransportError)
    -> WaitOutcome
  {
    try poll(descriptor, for: events, until: deadline, unless: wakeUp)
  }

  /// Returns whether the other end has closed the connection or sends no more, as far as the kernel knows now.
  package func isHungUp() throws(TransportError) -> Bool {
    try has(CShort(POLLHUP) | CShort(POLLERR) | OpenFile.peerHasClosed)
  }

  /// Returns whether both directions have ended, as far as the kernel knows now.
  func hasEnded() throws(TransportError) -> Bool { try has(CShort(POLLHUP)) }

  /// Returns whether poll(2) reports any of `events` at once.
  private func has(_ events: CShort) throws(TransportError) -> Bool {
    var entries: InlineArray<1, pollfd> = [pollfd(fd: descriptor, events: events, revents: 0)]
    guard try poll(&entries, until: Deadline(afterMilliseconds: 0)) else { return false }
    return entries[0].revents & events != 0
  }
}

/// The waits of one call that reads or writes: one before each further attempt, until the connection has ended.
///
/// The kernel reports an error of a socket once, perhaps to a call in the other direction. From then on, a Bluetooth socket whose
/// channel has ended has neither bytes nor an end to report, and poll(2) on it returns at once.
struct RepeatedWait: ~Copyable {
  private let file: OpenFile
  private var isRepeated = false
  private var hasEnded = false

  init(on file: OpenFile) { self.file = file }

  /// Must be called before each wait, after an attempt that would have blocked.
  ///
  /// - Throws: ``TransportError/closed`` if the last attempt was made after the end of the connection.
  mutating func begin() throws(TransportError) {
    guard !hasEnded else { throw .closed }
    if isRepeated { hasEnded = try file.hasEnded() }
    isRepeated = true
  }
}

/// Makes a wake-up.
package func makeWakeUp() throws(TransportError) -> WakeUp {
  do throws(SystemError) { return try WakeUp() } catch { throw TransportError(errno: error.number) }
}

/// Waits for `milliseconds` before another attempt.
///
/// - Throws: ``TransportError/cancelled`` when `wakeUp` is raised.
func pause(milliseconds: Int, unless wakeUp: WakeUp?) throws(TransportError) {
  let outcome = try poll(-1, for: 0, until: Deadline(afterMilliseconds: milliseconds), unless: wakeUp)
  if outcome == .interrupted { throw .cancelled }
}

/// Waits for `events` of an open file until `deadline`, or until `wakeUp` is raised.
func poll(
  _ descriptor: CInt, for events: CInt, until deadline: Deadline, unless wakeUp: WakeUp?
) throws(TransportError) -> WaitOutcome {
  // poll(2) skips an entry with a negative descriptor.
  var entries: InlineArray<2, pollfd> = [
    pollfd(fd: wakeUp?.descriptor ?? -1, events: CShort(POLLIN), revents: 0),
    pollfd(fd: descriptor, events: CShort(events), revents: 0),
  ]
  guard try poll(&entries, until: deadline) else { return .timedOut }
  return entries[0].revents != 0 ? .interrupted : .ready
}

/// Waits for events, and returns false if `deadline` passes first. The wait restarts after each signal of the process.
///
/// Source: poll(2).
func poll<let count: Int>(
  _ entries: inout InlineArray<count, pollfd>, until deadline: Deadline
) throws(TransportError) -> Bool {
  while true {
    // The timeout of poll(2) is at most 24 days, so a longer wait consists of several.
    let timeoutMilliseconds = CInt(clamping: deadline.remainingMilliseconds)
    var span = entries.mutableSpan
    let readyCount = unsafe span.withUnsafeMutableBufferPointer { entries in
      unsafe Glibc.poll(entries.baseAddress, nfds_t(entries.count), timeoutMilliseconds)
    }
    if readyCount > 0 { return true }
    if readyCount < 0 && errno != EINTR { throw TransportError(errno: errno) }
    if readyCount == 0 && deadline.hasPassed { return false }
  }
}
