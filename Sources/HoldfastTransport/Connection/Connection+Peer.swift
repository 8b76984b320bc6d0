import CBlueZ
import Glibc

/// What the kernel knows of the other end of a connection. It is for logs: it proves nothing.
public enum Peer: Sendable, Hashable {
  /// The process that connected to a socket in the file system, as it was then.
  case process(userID: UInt32, processID: Int32)
  /// A Bluetooth device, by the address that it used.
  case bluetooth(BluetoothAddress)
}

extension Connection {
  /// The peer of an accepted connection; nil for a serial line, and where the kernel does not say.
  ///
  /// Source: SO_PEERCRED of unix(7), getpeername(2).
  public var peer: Peer? {
    guard terminal == nil else { return nil }
    return switch port {
    case nil: file.peerProcess
    case .l2cap, .lowEnergy: file.peerName(sockaddr_l2()).map { .bluetooth(BluetoothAddress($0.l2_bdaddr)) }
    case .rfcomm: file.peerName(sockaddr_rc()).map { .bluetooth(BluetoothAddress($0.rc_bdaddr)) }
    }
  }
}

extension OpenFile {
  /// `struct ucred`: the ids of process, user and group, of 32 bits each.
  fileprivate var peerProcess: Peer? {
    var credentials: InlineArray<3, UInt32> = [0, 0, 0]
    let byteCount = socklen_t(MemoryLayout<InlineArray<3, UInt32>>.size)
    var actualByteCount = byteCount
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &actualByteCount) == 0,
      actualByteCount == byteCount
    else { return nil }
    return .process(userID: credentials[1], processID: Int32(bitPattern: credentials[0]))
  }

  /// What getpeername(2) writes over `name`; nil where it is of another kind.
  fileprivate func peerName<Name: BitwiseCopyable>(_ name: Name) -> Name? {
    var name = name
    var byteCount = socklen_t(MemoryLayout<Name>.size)
    let result = unsafe withUnsafeMutablePointer(to: &name) { name in
      unsafe name.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(descriptor, $0, &byteCount) }
    }
    return result == 0 && byteCount == socklen_t(MemoryLayout<Name>.size) ? name : nil
  }
}
