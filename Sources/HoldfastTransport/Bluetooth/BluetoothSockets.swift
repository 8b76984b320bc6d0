import CBlueZ
import Glibc
import HoldfastLinux

/// A Bluetooth address and port as bind(2) and connect(2) take them: a `sockaddr_l2` or `sockaddr_rc`.
struct BluetoothSocketName {
  private var storage = sockaddr_storage()
  private let byteCount: socklen_t

  /// The number is 0 where the port leaves it open.
  init(_ address: BluetoothAddress, _ port: BluetoothPort) {
    switch port {
    case .l2cap(let psm): self.init(l2cap: address, psm: psm ?? 0, kind: BDADDR_BREDR)
    case .lowEnergy(let psm, .public): self.init(l2cap: address, psm: psm, kind: BDADDR_LE_PUBLIC)
    case .lowEnergy(let psm, .random): self.init(l2cap: address, psm: psm, kind: BDADDR_LE_RANDOM)
    case .rfcomm(let channel):
      var name = sockaddr_rc()
      name.rc_family = sa_family_t(AF_BLUETOOTH)
      name.rc_bdaddr = bdaddr_t(address)
      name.rc_channel = channel ?? 0
      self.init(copying: name)
    }
  }

  private init(l2cap address: BluetoothAddress, psm: UInt16, kind: CInt) {
    var name = sockaddr_l2()
    name.l2_family = sa_family_t(AF_BLUETOOTH)
    name.l2_bdaddr = bdaddr_t(address)
    name.l2_psm = psm.littleEndian
    name.l2_bdaddr_type = UInt8(kind)
    self.init(copying: name)
  }

  private init<Name: BitwiseCopyable>(copying name: Name) {
    byteCount = socklen_t(MemoryLayout<Name>.size)
    unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: name, as: Name.self) }
  }

  /// Calls bind(2) or connect(2). Returns 0, or the value of errno.
  func pass(to call: (CInt, UnsafePointer<sockaddr>?, socklen_t) -> CInt, of file: OpenFile) -> CInt {
    unsafe withUnsafePointer(to: storage) { storage in
      unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        unsafe call(file.descriptor, name, byteCount) == 0 ? 0 : errno
      }
    }
  }
}

extension bdaddr_t {
  init(_ address: BluetoothAddress) {
    self.init()
    unsafe withUnsafeMutableBytes(of: &self) { unsafe $0.copyBytes(from: address.leastSignificantFirst) }
  }
}

extension BluetoothAddress {
  init(_ address: bdaddr_t) {
    self.init(leastSignificantFirst: unsafe withUnsafeBytes(of: address) { unsafe Array($0)[...] })
  }
}

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

  /// A Bluetooth socket that listens, and the port it listens at.
  ///
  /// - Parameters:
  ///   - address: that of a local adapter, or any.
  ///   - security: the least that a peer's link must have before the kernel lets the peer in.
  static func listen(
    at address: BluetoothAddress, _ port: BluetoothPort, adapter: UInt16?, security: Endpoint.Security, backlog: Int
  ) throws(TransportError) -> (OpenFile, BluetoothPort) {
    let file = try bluetoothSocket(port)
    let local = try LocalAdapter.bindingAddress(adapter: adapter, address: address)
    try file.bind(to: local, port)
    try file.require(security)
    try file.offerLargestPackets(port)
    try checked(Glibc.listen(file.descriptor, CInt(clamping: backlog)))
    return (file, try file.boundPort(port))
  }

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
package struct PacketLimits: Sendable, Equatable {
  /// What this end takes.
  package let receivingByteCount: Int
  /// What the peer takes.
  package let sendingByteCount: Int
}
