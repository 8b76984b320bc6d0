import Glibc
import HoldfastLinux

/// A local socket of packets in the file system, mode 0600.
struct AgentSocket: ~Copyable, Sendable {
  let descriptor: Descriptor

  /// Listens at a path. A stale socket is replaced; one at which an agent listens is not.
  ///
  /// - Throws: `EADDRINUSE` if an agent listens there, or another file has the name; other numbers of bind(2).
  init(listeningAt path: String) throws(SystemError) {
    let made = try Self.make()
    // Linux gives the name that bind(2) creates the mode of the socket, so it never has another mode.
    try retrying { fchmod(made.number, 0o600) }
    let folder = try Descriptor(opening: Self.folder(of: path), flags: O_RDONLY | O_DIRECTORY)
    // Two agents that start at once take turns between bind(2) and listen(2), when a socket looks like a stale one.
    try Self.takeTurn(folder)
    do throws(SystemError) { try unsafe Self.withAddress(path) { unsafe bind(made.number, $0, $1) } } catch {
      guard error.number == EADDRINUSE, try Self.isStale(path) else { throw error }
      try retrying { unsafe unlink(path) }
      try unsafe Self.withAddress(path) { unsafe bind(made.number, $0, $1) }
    }
    try retrying { listen(made.number, 64) }
    descriptor = made
  }

  /// Connects to an agent of the same user.
  ///
  /// - Throws: `ENOENT` or `ECONNREFUSED` if there is none, `EACCES` if it belongs to another user.
  init(connectingTo path: String) throws(SystemError) {
    let made = try Self.make()
    try unsafe Self.withAddress(path) { unsafe connect(made.number, $0, $1) }
    guard Self.isOfThisUser(made.number) else { throw SystemError(EACCES) }
    descriptor = made
  }

  /// Whether the process at the other end has the user of this one. Source: unix(7), SO_PEERCRED.
  static func isOfThisUser(_ number: Int32) -> Bool {
    // `struct ucred`, which the C library's module leaves out.
    var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, uid_t.max, gid_t.max)
    var byteCount = socklen_t(MemoryLayout.size(ofValue: credentials))
    return unsafe getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &byteCount) == 0
      && credentials.user == geteuid()
  }

  private static func make() throws(SystemError) -> Descriptor {
    let made = try Descriptor(taking: socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0))
    // A listener that accepts nobody does not hold up a connect(2). Source: socket(7).
    var limit = timeval(tv_sec: Int(patienceMilliseconds) / 1000, tv_usec: 0)
    let byteCount = socklen_t(MemoryLayout<timeval>.size)
    try retrying { unsafe setsockopt(made.number, SOL_SOCKET, SO_SNDTIMEO, &limit, byteCount) }
    return made
  }

  /// The longest wait for another process, in milliseconds.
  private static var patienceMilliseconds: Int { 5000 }

  /// Locks a folder, in which another user may hold the lock for ever.
  ///
  /// - Throws: `EAGAIN` after five seconds.
  private static func takeTurn(_ folder: borrowing Descriptor) throws(SystemError) {
    let deadline = Deadline(afterMilliseconds: patienceMilliseconds)
    while true {
      do throws(SystemError) {
        try retrying { flock(folder.number, LOCK_EX | LOCK_NB) }
        return
      } catch {
        guard error.number == EAGAIN, !deadline.hasPassed else { throw error }
        usleep(10_000)
      }
    }
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Whether a socket has the name at which no process listens.
  private static func isStale(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    try retrying { unsafe lstat(path, &status) }
    guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid() else { return false }
    let probe = try make()
    do throws(SystemError) {
      try unsafe withAddress(path) { unsafe connect(probe.number, $0, $1) }
      return false
    } catch { return error.number == ECONNREFUSED }
  }

  private static func withAddress(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(SystemError) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw SystemError(ENAMETOOLONG)
    }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    try retrying {
      unsafe withUnsafePointer(to: &address) { address in
        unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
    }
  }
}
