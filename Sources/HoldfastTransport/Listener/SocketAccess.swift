import Glibc

// The C library's module leaves these out. Source: Linux, include/uapi/asm-generic/fcntl.h and include/uapi/linux/fcntl.h.
private let openPath: CInt = 0x20_0000
private let emptyPath: CInt = 0x1000

/// Who may connect to a socket in the file system.
public struct SocketAccess: Sendable, Hashable {
  /// The permissions of the file, at most 0o777; on Linux, to connect takes the permission to write. Nil stands for 0o660 with a
  /// group and for 0o600 without one.
  public let mode: UInt16?
  /// The name of the group that the file belongs to, or its number; nil for that of the process.
  public let group: String?

  init(mode: UInt16?, group: String?) {
    (self.mode, self.group) = (mode, group)
  }

  /// Whether every user of the host may connect.
  public var isForEverybody: Bool { (mode ?? 0) & 0o002 != 0 }

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
