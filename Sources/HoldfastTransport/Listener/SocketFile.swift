import Glibc
import HoldfastLinux
import Synchronization

/// The name of a listening socket in the file system, removed once, and only while it is still the one that was made.
final class SocketFile: Sendable {
  private let path: String
  private let identity: Mutex<OpenFile.Identity?>

  private init(path: String, identity: OpenFile.Identity?) {
    self.path = path
    self.identity = Mutex(identity)
  }

  /// Removes the name, unless somebody has put another file there.
  func remove() {
    identity.withLock { identity in
      if let made = identity, OpenFile.Identity(path: path) == made { unsafe unlink(path) }
      identity = nil
    }
  }

  /// A socket that listens at `path`. Its file has mode 0600 from the first moment, and what `access` says before the socket listens:
  /// until then, nobody can connect.
  static func listen(
    atPath path: String, framing: Framing, backlog: Int, access: SocketAccess? = nil, lockMilliseconds: Int = 2000
  ) throws(TransportError) -> (OpenFile, SocketFile) {
    let group = try access?.groupID()
    let file = try OpenFile.unixSocket(framing: framing)
    // Linux gives the name that bind(2) makes the mode of the socket: there is no moment with another.
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
    guard Glibc.listen(file.descriptor, CInt(clamping: backlog)) == 0 else {
      let error = TransportError(errno: errno)
      name.remove()
      throw error
    }
    withExtendedLifetime(lock) {}
    return (file, name)
  }

  /// Removes the socket file of a listener that is gone.
  private static func removeStale(path: String) throws(TransportError) {
    guard let found = OpenFile.Identity(path: path) else { return }
    guard found.isSocket else { throw .pathOccupied }
    // Of either framing: another type of socket is told apart only where somebody holds it.
    switch try OpenFile.unixSocket(framing: .packets).connect(toPath: path) {
    case ECONNREFUSED: break
    case ENOENT: return
    case EACCES, EPERM: throw .permissionDenied
    default: throw .addressInUse
    }
    guard OpenFile.Identity(path: path) == found else { throw .addressInUse }
    guard unsafe unlink(path) == 0 || errno == ENOENT else { throw TransportError(errno: errno) }
  }

  /// Keeps other listeners of the folder out between bind(2) and listen(2), where a socket looks like a stale one.
  ///
  /// Returns nil where the folder cannot be read, or where the lock is not to be had in time: there is none then, and the few
  /// microseconds are left to chance. No listener holds it for longer than those, but whoever can read the folder may.
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
      try pause(milliseconds: 5)
    }
    return file
  }
}

// The C library's module leaves these out. Source: Linux, include/uapi/asm-generic/fcntl.h and include/uapi/linux/fcntl.h.
private let openPath: CInt = 0x20_0000
private let emptyPath: CInt = 0x1000

/// Who may connect to a socket in the file system.
package struct SocketAccess: Sendable, Hashable {
  /// The permissions of the file, at most 0o777; on Linux, to connect takes the permission to write. Nil stands for 0o660 with a
  /// group and for 0o600 without one.
  package let mode: UInt16?
  /// The name of the group that the file belongs to, or its number; nil for that of the process.
  package let group: String?

  init(mode: UInt16?, group: String?) {
    (self.mode, self.group) = (mode, group)
  }

  /// Whether every user of the host may connect.
  package var isForEverybody: Bool { (mode ?? 0) & 0o002 != 0 }

  var fileMode: mode_t { mode_t(mode ?? (group == nil ? 0o600 : 0o660)) }

  /// The number of the group, nil where the file keeps the one that it has.
  ///
  /// Source: getgrnam_r(3). Throws ``TransportError/unknownGroup``.
  func groupID() throws(TransportError) -> gid_t? {
    guard let group else { return nil }
    if group.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) {
      // The largest number stands for no group.
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

  /// Gives the socket at `path`, which this process has just bound and not yet listens on, its group and its mode.
  ///
  /// The name is opened without following a link, and only a socket of this process's own user is changed: whoever can write to the
  /// folder must not have another file opened up. Source: open(2) O_PATH, fchownat(2) AT_EMPTY_PATH, proc(5).
  func apply(toSocketAt path: String, group: gid_t?) throws(TransportError) {
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
