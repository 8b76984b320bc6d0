import Glibc
import HoldfastLinux
import Synchronization

/// The name of a listening socket in the file system. It is removed once, and only if it still names the socket created here.
package final class SocketFile: Sendable {
  private let path: String
  private let identity: Mutex<OpenFile.Identity?>

  private init(path: String, identity: OpenFile.Identity?) {
    self.path = path
    self.identity = Mutex(identity)
  }

  /// Removes the name, unless another process has put a different file there.
  package func remove() {
    identity.withLock { identity in
      if let made = identity, OpenFile.Identity(path: path) == made { unsafe unlink(path) }
      identity = nil
    }
  }

  /// Returns a socket that listens at `path`.
  ///
  /// Its file has mode 0600 from its creation, and gets the rights of `access` before the socket listens. Until then, no peer can
  /// connect.
  package static func listen(
    atPath path: String, framing: Framing, backlog: Int, access: SocketAccess? = nil, lockMilliseconds: Int = 2000
  ) throws(TransportError) -> (OpenFile, SocketFile) {
    let group = try access?.groupID()
    let file = try OpenFile.unixSocket(framing: framing)
    // Linux gives the name that bind(2) creates the mode of the socket, so it never has another mode.
    try checked(fchmod(file.descriptor, 0o600))
    let lock = try lockFolder(of: path, withinMilliseconds: lockMilliseconds)
    var code = file.bind(toPath: path)
    if code == EADDRINUSE {
      try removeStale(path: path)
      code = file.bind(toPath: path)
    }
    guard code == 0 else { throw TransportError(errno: code) }
    if let access {
      let bound = SocketFile(path: path, identity: OpenFile.Identity(path: path))
      do throws(TransportError) { try access.apply(toSocketAt: path, group: group) } catch {
        bound.remove()
        throw error
      }
    }
    let name = SocketFile(path: path, identity: OpenFile.Identity(path: path))
    do throws(TransportError) { try file.listen(backlog: backlog) } catch {
      name.remove()
      throw error
    }
    withExtendedLifetime(lock) {}
    return (file, name)
  }

  /// Removes the socket file of a listener that no longer exists.
  private static func removeStale(path: String) throws(TransportError) {
    guard let found = OpenFile.Identity(path: path) else { return }
    guard found.isSocket else { throw .pathOccupied }
    // A socket of packets serves for either framing: connect(2) reports another socket type only if a process still has it open.
    switch try OpenFile.unixSocket(framing: .packets).connect(toPath: path) {
    case ECONNREFUSED: break
    case ENOENT: return
    case EACCES, EPERM: throw .permissionDenied
    default: throw .addressInUse
    }
    guard OpenFile.Identity(path: path) == found else { throw .addressInUse }
    guard unsafe unlink(path) == 0 || errno == ENOENT else { throw TransportError(errno: errno) }
  }

  /// Locks the folder against other listeners between bind(2) and listen(2), when a socket looks like a stale one.
  ///
  /// Returns nil if the folder cannot be read, or if the lock is not available in time. The few microseconds between the two
  /// calls are then unprotected. No listener holds the lock for longer than that, but any process that can read the folder can.
  private static func lockFolder(
    of path: String, withinMilliseconds milliseconds: Int
  ) throws(TransportError) -> OpenFile? {
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    let file = OpenFile(taking: descriptor)
    let deadline = Deadline(afterMilliseconds: milliseconds)
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { return nil }
      guard !deadline.hasPassed else { return nil }
      try pause(milliseconds: 5, unless: nil)
    }
    return file
  }
}

extension Endpoint {
  /// Whether it is a socket in the file system to which every user of this host may connect, by the permissions of the file.
  package var isForEverybody: Bool {
    guard case .socket(let path) = address, let file = OpenFile.Identity(path: path) else { return false }
    return file.mode & 0o002 != 0
  }
}

// The C library's module omits these. Source: Linux, include/uapi/asm-generic/fcntl.h and include/uapi/linux/fcntl.h.
private let openPath: CInt = 0x20_0000
private let emptyPath: CInt = 0x1000

/// The access rights to a socket in the file system.
package struct SocketAccess: Sendable, Hashable {
  /// The permissions of the file, at most 0o777. On Linux, a peer needs write permission to connect. Nil stands for 0o660 with a
  /// group and for 0o600 without one.
  package let mode: UInt16?
  /// The name or number of the group that owns the file; nil for the group of the process.
  package let group: String?

  package init(mode: UInt16?, group: String?) {
    (self.mode, self.group) = (mode, group)
  }

  var fileMode: mode_t { mode_t(mode ?? (group == nil ? 0o600 : 0o660)) }

  /// Returns the number of the group; nil if the file keeps its present group.
  ///
  /// Source: getgrnam_r(3).
  /// - Throws: ``TransportError/unknownGroup``.
  func groupID() throws(TransportError) -> gid_t? {
    guard let group else { return nil }
    if group.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) {
      // The largest number means "no group".
      guard let number = gid_t(group), number != gid_t.max else { throw .unknownGroup }
      return number
    }
    var entry = unsafe Glibc.group()
    var found: UnsafeMutablePointer<Glibc.group>?
    var names = [CChar](repeating: 0, count: 1 << 16)
    while true {
      let code = unsafe getgrnam_r(group, &entry, &names, names.count, &found)
      if code == EINTR { continue }
      if code == ERANGE && names.count < 1 << 24 {
        names = [CChar](repeating: 0, count: names.count * 4)
        continue
      }
      guard code == 0, let found = unsafe found else { throw .unknownGroup }
      return unsafe found.pointee.gr_gid
    }
  }

  /// Sets the group and the mode of the socket at `path`, which this process has just bound and does not listen on yet.
  ///
  /// The name is opened without following a link, and only a socket that this process's user owns is changed: otherwise, a user
  /// with write access to the folder could have the permissions of another file widened.
  ///
  /// Source: open(2) O_PATH, fchownat(2) AT_EMPTY_PATH, proc(5).
  package func apply(toSocketAt path: String, group: gid_t?) throws(TransportError) {
    let file = OpenFile(taking: try checked(unsafe open(path, openPath | O_NOFOLLOW | O_CLOEXEC)))
    var status = stat()
    try checked(unsafe fstat(file.descriptor, &status))
    guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid(), status.st_nlink == 1 else {
      throw .pathOccupied
    }
    if let group {
      let result = unsafe fchownat(file.descriptor, "", uid_t.max, group, emptyPath)
      if result != 0 && errno == EPERM { throw .groupNotAllowed }
      try checked(result)
    }
    try checked(unsafe chmod("/proc/self/fd/\(file.descriptor)", fileMode))
  }
}
