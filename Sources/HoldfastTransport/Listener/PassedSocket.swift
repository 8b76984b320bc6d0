import CBlueZ
import Glibc
import HoldfastLinux

/// A listening socket in the file system that a service manager (systemd) has made and passes to this process.
///
/// The manager keeps it and its name: whoever connects while no process serves it, waits for the next one.
package struct PassedSocket: Sendable {
  /// A reason why a descriptor cannot be served.
  package enum Fault: Error, Equatable, Sendable {
    /// It is not a listening socket with a name in the file system.
    case notListening
    /// It is a socket of datagrams.
    case datagrams
  }

  /// The path of its name.
  package let path: String
  /// The method that separates messages on its connections.
  package let framing: Framing
  let file: OpenFile

  /// Takes over `descriptor`, which must be open and have no other owner.
  package init(taking descriptor: CInt) throws(Fault) {
    file = OpenFile(taking: descriptor)
    guard Self.option(SO_DOMAIN, of: descriptor) == AF_UNIX, let path = Self.path(of: descriptor) else {
      throw .notListening
    }
    switch Self.option(SO_TYPE, of: descriptor) {
    case CInt(SOCK_SEQPACKET.rawValue): framing = .packets
    case CInt(SOCK_STREAM.rawValue): framing = .stream
    default: throw .datagrams
    }
    guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else {
      throw .notListening
    }
    self.path = path
  }

  /// Whether an endpoint names this socket.
  package func isNamed(by endpoint: Endpoint) -> Bool { endpoint.address == .socket(path: path) }

  /// Reads a number that describes a socket; nil if the descriptor is no socket. Source: socket(7).
  private static func option(_ name: CInt, of descriptor: CInt) -> CInt? {
    var value: CInt = 0
    var byteCount = socklen_t(MemoryLayout<CInt>.size)
    return unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &byteCount) == 0 ? value : nil
  }

  /// Reads the path to which a local socket is bound; nil if it has none, or an abstract name. Source: unix(7).
  private static func path(of descriptor: CInt) -> String? {
    var address = sockaddr_un()
    var byteCount = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe getsockname(descriptor, address, &byteCount)
      }
    }
    guard result == 0 else { return nil }
    let bytes = unsafe withUnsafeBytes(of: address.sun_path) { unsafe $0.prefix { $0 != 0 }.map { $0 } }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}
