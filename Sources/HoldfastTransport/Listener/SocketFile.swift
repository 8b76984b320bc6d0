import Glibc
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
