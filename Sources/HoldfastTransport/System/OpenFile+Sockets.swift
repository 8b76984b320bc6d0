import CBlueZ
import Glibc

extension Framing {
  /// The second argument of socket(2): the type, not blocking, closed on exec.
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
  /// A new socket of the local domain, bound to nothing.
  static func unixSocket(framing: Framing) throws(TransportError) -> OpenFile {
    OpenFile(taking: try checked(socket(AF_UNIX, framing.socketType, 0)))
  }

  /// Two sockets connected to each other.
  static func socketPair(framing: Framing) throws(TransportError) -> (OpenFile, OpenFile) {
    var ends: InlineArray<2, CInt> = [-1, -1]
    var span = ends.mutableSpan
    try checked(
      unsafe span.withUnsafeMutableBufferPointer { unsafe socketpair(AF_UNIX, framing.socketType, 0, $0.baseAddress) })
    return (OpenFile(taking: ends[0]), OpenFile(taking: ends[1]))
  }

  /// Source: bind(2). Returns 0, or the value of errno.
  func bind(toPath path: String) -> CInt {
    unsafe withUnixAddress(of: path) { unsafe Glibc.bind(descriptor, $0, $1) }
  }

  /// Source: connect(2). Returns 0, or the value of errno.
  func connect(toPath path: String) -> CInt {
    while true {
      let code = unsafe withUnixAddress(of: path) { unsafe Glibc.connect(descriptor, $0, $1) }
      if code != EINTR { return code }
    }
  }

  /// The next waiting peer, nil where nobody waits.
  ///
  /// The C library's module leaves accept4(2) out, so there is a moment in which a program started by another thread
  /// inherits the descriptor.
  func acceptPeer() throws(TransportError) -> OpenFile? {
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
