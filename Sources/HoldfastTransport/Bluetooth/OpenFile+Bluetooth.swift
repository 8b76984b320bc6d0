import CBlueZ
import Glibc

extension OpenFile {
  /// A new Bluetooth socket, bound to nothing.
  ///
  /// - Throws: ``TransportError/unsupported`` where the kernel lacks Bluetooth or the protocol.
  static func bluetoothSocket(_ port: BluetoothPort) throws(TransportError) -> OpenFile {
    let protocolNumber =
      switch port {
      case .l2cap, .lowEnergy: BTPROTO_L2CAP
      case .rfcomm: BTPROTO_RFCOMM
      }
    return OpenFile(taking: try checked(socket(AF_BLUETOOTH, port.framing.socketType, protocolNumber)))
  }

  /// Source: bind(2). Takes the address of an adapter, or any, and a port.
  func bind(to address: BluetoothAddress, _ port: BluetoothPort) throws(TransportError) {
    let code = unsafe BluetoothSocketName(address, port).pass(to: Glibc.bind, of: self)
    guard code == 0 else { throw TransportError(errno: code) }
  }

  /// Source: connect(2), and its EINPROGRESS.
  ///
  /// - Parameters:
  ///   - deadline: until when the connection has to be made.
  ///   - attemptMilliseconds: how long this attempt may take to have a link. Where there is one by then, the rest has
  ///     ``linkedMilliseconds`` more: a link that is about to end may lose the request for a channel without an error. Another attempt
  ///     goes on with a pairing that a person has yet to confirm.
  /// - Throws: ``TransportError/timedOutWaiting`` after either, and what became of the link otherwise.
  func connect(
    to device: BluetoothAddress, _ port: BluetoothPort, by deadline: Deadline, attemptMilliseconds: Int = .max
  )
    throws(TransportError)
  {
    var code = unsafe BluetoothSocketName(device, port).pass(to: Glibc.connect, of: self)
    if code == EINPROGRESS || code == EINTR {
      let first = min(deadline, Deadline(afterMilliseconds: attemptMilliseconds))
      var outcome = try wait(for: POLLOUT, until: first, unless: nil)
      if outcome == .timedOut, LocalAdapter.hasLowEnergyLink(to: device) {
        let second = min(deadline, Deadline(afterMilliseconds: OpenFile.linkedMilliseconds))
        outcome = try wait(for: POLLOUT, until: second, unless: nil)
      }
      guard outcome == .ready else { throw .timedOutWaiting }
      code = try pendingError()
    }
    guard code == 0 else { throw TransportError(connecting: code) }
  }

  /// How long an attempt may take to have a channel on a link, in milliseconds.
  private static let linkedMilliseconds = 3000

  /// The port of a socket that is bound to `port`, with the number that the kernel has chosen where that is open.
  ///
  /// Source: getsockname(2).
  func boundPort(_ port: BluetoothPort) throws(TransportError) -> BluetoothPort {
    switch port {
    case .l2cap(nil):
      var name = sockaddr_l2()
      try readName(into: &name)
      return .l2cap(psm: UInt16(littleEndian: name.l2_psm))
    case .rfcomm(nil):
      var name = sockaddr_rc()
      try readName(into: &name)
      return .rfcomm(channel: name.rc_channel)
    default: return port
    }
  }

  private func readName<Name: BitwiseCopyable>(into name: inout Name) throws(TransportError) {
    var byteCount = socklen_t(MemoryLayout<Name>.size)
    let result = unsafe withUnsafeMutablePointer(to: &name) { name in
      unsafe name.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &byteCount) }
    }
    try checked(result)
  }
}
