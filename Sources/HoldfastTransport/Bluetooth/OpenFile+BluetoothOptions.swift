import CBlueZ
import Glibc

extension OpenFile {
  /// The most bytes of a packet that this end takes.
  ///
  /// It is the most that there can be, so that a message which is too long arrives and is answered as such, rather than being dropped
  /// by the kernel without a word.
  private static let receivingPacketByteCount: UInt16 = .max

  /// Asks for the least security of the link. Source: BT_SECURITY.
  func require(_ security: Endpoint.Security) throws(TransportError) {
    let level =
      switch security {
      case .low: BT_SECURITY_LOW
      case .medium: BT_SECURITY_MEDIUM
      case .high: BT_SECURITY_HIGH
      }
    try setOption(SOL_BLUETOOTH, BT_SECURITY, to: bt_security(level: UInt8(level), key_size: 0))
  }

  /// Offers the peer packets of any length, on the protocols that have packets. The socket is bound and not yet connected.
  ///
  /// Source: L2CAP_OPTIONS for BR/EDR, BT_RCVMTU for LE.
  func offerLargestPackets(_ port: BluetoothPort) throws(TransportError) {
    switch port {
    case .l2cap:
      var options: l2cap_options = try option(SOL_L2CAP, L2CAP_OPTIONS)
      options.imtu = OpenFile.receivingPacketByteCount
      try setOption(SOL_L2CAP, L2CAP_OPTIONS, to: options)
    case .lowEnergy:
      try setOption(SOL_BLUETOOTH, BT_RCVMTU, to: OpenFile.receivingPacketByteCount)
    case .rfcomm: break
    }
  }

  /// The most bytes of a packet each way on a connection: what was offered to the peer, and what the peer offered.
  ///
  /// Source: L2CAP_OPTIONS for BR/EDR; BT_RCVMTU and BT_SNDMTU for LE. Nil for protocols without packets.
  func packetLimits(_ port: BluetoothPort) throws(TransportError) -> PacketLimits? {
    switch port {
    case .l2cap:
      let options: l2cap_options = try option(SOL_L2CAP, L2CAP_OPTIONS)
      return PacketLimits(receivingByteCount: Int(options.imtu), sendingByteCount: Int(options.omtu))
    case .lowEnergy:
      let receiving: UInt16 = try option(SOL_BLUETOOTH, BT_RCVMTU)
      let sending: UInt16 = try option(SOL_BLUETOOTH, BT_SNDMTU)
      return PacketLimits(receivingByteCount: Int(receiving), sendingByteCount: Int(sending))
    case .rfcomm: return nil
    }
  }

  /// The error that a connection in the making ended with, or 0. Source: SO_ERROR.
  func pendingError() throws(TransportError) -> CInt {
    try option(SOL_SOCKET, SO_ERROR)
  }

  private func setOption<Value: BitwiseCopyable>(
    _ level: CInt, _ name: CInt, to value: Value
  ) throws(TransportError) {
    var value = value
    try checked(unsafe setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Value>.size)))
  }

  private func option<Value: BitwiseCopyable>(_ level: CInt, _ name: CInt) throws(TransportError) -> Value {
    var byteCount = socklen_t(MemoryLayout<Value>.size)
    return try unsafe withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { value throws(TransportError) in
      try checked(unsafe getsockopt(descriptor, level, name, value.baseAddress, &byteCount))
      guard Int(byteCount) == MemoryLayout<Value>.size else { throw .other(errno: EINVAL) }
      return unsafe value[0]
    }
  }
}

/// The most bytes of a packet on a connection: the maximum transmission units (MTU) of L2CAP.
public struct PacketLimits: Sendable, Equatable {
  /// What this end takes.
  public let receivingByteCount: Int
  /// What the peer takes.
  public let sendingByteCount: Int
}
