import Glibc

/// The service manager that started this process, such as systemd: the sockets and credentials that it passes, and the states that
/// it is told.
///
/// Without such a manager, nothing is passed and nothing is told. The protocols are implemented here because a library for them
/// would be part of what a prover measures.
package enum ServiceManager {
  /// A state of this process. Source: sd_notify(3).
  package enum State: String, Sendable {
    /// It serves from now on.
    case ready = "READY=1"
    /// It has begun to end.
    case stopping = "STOPPING=1"
    /// It still makes progress.
    case alive = "WATCHDOG=1"
  }

  /// Tells the manager a state, as one datagram to the socket in `NOTIFY_SOCKET`. A manager that does not take it within a second
  /// acts as if the state had not been reached.
  ///
  /// Source: sd_notify(3): a path, or `@` and the rest of an abstract name.
  package static func tell(_ state: State) {
    guard let name = variable("NOTIFY_SOCKET").map({ [UInt8]($0.utf8) }), let first = name.first,
      first == UInt8(ascii: "/") || first == UInt8(ascii: "@")
    else { return }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard name.count > 1, name.count < capacity else { return }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
      unsafe path.copyBytes(from: name)
      // The name of an abstract socket begins with a zero byte, and has no other end than its length.
      if first == UInt8(ascii: "@") { unsafe path[0] = 0 }
    }
    let byteCount = socklen_t(MemoryLayout<sockaddr_un>.size - capacity + name.count)
    guard let socket = try? Descriptor(taking: socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    else { return }
    // A manager that reads nothing must not keep this process waiting.
    var limit = timeval(tv_sec: 1, tv_usec: 0)
    _ = unsafe setsockopt(
      socket.number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let text = [UInt8](state.rawValue.utf8)
    unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        _ = unsafe sendto(socket.number, text, text.count, CInt(MSG_NOSIGNAL), address, byteCount)
      }
    }
  }

  /// The microseconds within which the manager wants to hear that this process is alive; nil if it does not.
  ///
  /// Source: sd_watchdog_enabled(3).
  package static var watchdogMicroseconds: UInt64? {
    guard variable("WATCHDOG_PID").map({ $0 == "\(getpid())" }) ?? true else { return nil }
    return variable("WATCHDOG_USEC").flatMap { UInt64($0) }.flatMap { $0 > 0 ? $0 : nil }
  }

  /// Takes the descriptors that the manager passes, and removes the variables that name them. Call it once, before there are
  /// threads.
  ///
  /// The descriptors are closed on exec from now on.
  ///
  /// Source: sd_listen_fds(3): `LISTEN_FDS` descriptors from 3 on, for the process `LISTEN_PID`.
  /// - Returns: the numbers of the descriptors, which have no other owner.
  /// - Throws: `EINVAL` if the variables are not numbers, `EBADF` if a descriptor is not open.
  package static func takeDescriptors() throws(SystemError) -> Range<CInt> {
    guard let process = variable("LISTEN_PID"), process == "\(getpid())", let count = variable("LISTEN_FDS") else {
      return 3..<3
    }
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsafe unsetenv(name) }
    guard let count = CInt(count), 0...CInt.max - 3 ~= count else { throw SystemError(EINVAL) }
    let descriptors = 3..<3 + count
    for descriptor in descriptors { try retrying { fcntl(descriptor, F_SETFD, FD_CLOEXEC) } }
    return descriptors
  }

  /// Returns the path of a credential that the manager passes; nil if it passes none of that name.
  ///
  /// Its file belongs to the manager or to this process's user. Its mode can show the mask of an access control list as
  /// permissions of a group, so it is read without the requirements for secret files.
  ///
  /// Source: systemd.exec(5), `LoadCredential=`.
  package static func credential(_ name: String) -> String? {
    guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")), let folder = variable("CREDENTIALS_DIRECTORY") else {
      return nil
    }
    let path = "\(folder)/\(name)"
    return unsafe access(path, F_OK) == 0 ? path : nil
  }

  /// Returns whether a stream of this process goes to the journal, which reads a priority at the beginning of each line.
  ///
  /// Source: systemd.exec(5), `JOURNAL_STREAM`: the device and inode numbers of the stream.
  package static func isJournal(_ descriptor: CInt) -> Bool {
    var status = stat()
    guard let stream = variable("JOURNAL_STREAM"), unsafe fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
}
