import CBlueZ
import Glibc
import HoldfastLinux

/// A Bluetooth address and port in the form for bind(2) and connect(2): a `sockaddr_l2` or `sockaddr_rc`.
package struct BluetoothSocketName {
  private var storage = sockaddr_storage()
  private let byteCount: socklen_t

  /// Creates the name. The number is 0 if the port leaves it open.
  package init(_ address: BluetoothAddress, _ port: BluetoothPort) {
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
  package func pass(to call: (CInt, UnsafePointer<sockaddr>?, socklen_t) -> CInt, of file: OpenFile) -> CInt {
    unsafe withUnsafePointer(to: storage) { storage in
      unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        unsafe call(file.descriptor, name, byteCount) == 0 ? 0 : errno
      }
    }
  }
}

extension bdaddr_t {
  package init(_ address: BluetoothAddress) {
    self.init()
    unsafe withUnsafeMutableBytes(of: &self) { unsafe $0.copyBytes(from: address.leastSignificantFirst) }
  }
}

extension BluetoothAddress {
  package init(_ address: bdaddr_t) {
    self.init(leastSignificantFirst: unsafe withUnsafeBytes(of: address) { unsafe Array($0)[...] })
  }
}

extension OpenFile {
  /// Creates a Bluetooth socket that is not bound.
  ///
  /// - Throws: ``TransportError/unsupported`` if the kernel lacks Bluetooth or the protocol.
  package static func bluetoothSocket(_ port: BluetoothPort) throws(TransportError) -> OpenFile {
    let protocolNumber =
      switch port {
      case .l2cap, .lowEnergy: BTPROTO_L2CAP
      case .rfcomm: BTPROTO_RFCOMM
      }
    return OpenFile(taking: try checked(socket(AF_BLUETOOTH, port.scheme.framing.socketType, protocolNumber)))
  }

  /// Binds the socket to the address of an adapter, or any, and a port. Source: bind(2).
  package func bind(to address: BluetoothAddress, _ port: BluetoothPort) throws(TransportError) {
    let code = unsafe BluetoothSocketName(address, port).pass(to: Glibc.bind, of: self)
    guard code == 0 else { throw TransportError(errno: code) }
  }

  /// Connects to a peer.
  ///
  /// Source: connect(2), and its EINPROGRESS.
  /// - Parameters:
  ///   - deadline: the time by which the connection must be complete.
  ///   - attemptMilliseconds: the maximum time for this attempt to establish a link. If there is a link by then, the channel has
  ///     ``linkedMilliseconds`` more: a link that is about to end may lose the request for a channel without an error. A
  ///     further attempt continues a pairing that a person has not confirmed yet.
  ///   - wakeUp: ends the attempt when it is raised; nil for nothing.
  /// - Throws: ``TransportError/timedOutWaiting`` after either limit, ``TransportError/cancelled`` by the wake-up, otherwise the
  ///   error of the link.
  package func connect(
    to device: BluetoothAddress, _ port: BluetoothPort, by deadline: Deadline, attemptMilliseconds: Int = .max,
    unless wakeUp: WakeUp?
  ) throws(TransportError) {
    var code = unsafe BluetoothSocketName(device, port).pass(to: Glibc.connect, of: self)
    if code == EINPROGRESS || code == EINTR {
      let first = min(deadline, Deadline(afterMilliseconds: attemptMilliseconds))
      var outcome = try wait(for: POLLOUT, until: first, unless: wakeUp)
      if outcome == .timedOut, LocalAdapter.hasLowEnergyLink(to: device) {
        let second = min(deadline, Deadline(afterMilliseconds: OpenFile.linkedMilliseconds))
        outcome = try wait(for: POLLOUT, until: second, unless: wakeUp)
      }
      guard outcome == .ready else { throw outcome == .interrupted ? .cancelled : .timedOutWaiting }
      code = try pendingError()
    }
    guard code == 0 else { throw TransportError(connecting: code) }
  }

  /// Makes the link to a peer over BR/EDR, without a channel. The link stays while the file is open.
  ///
  /// Nothing is sent on it, and nothing secures it: the socket is for packets without a connection to the one PSM for which the
  /// kernel asks for no security, that of 3D synchronisation.
  package static func link(
    to device: BluetoothAddress, from local: BluetoothAddress, by deadline: Deadline, unless wakeUp: WakeUp?
  ) throws(TransportError) -> OpenFile {
    let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let file = OpenFile(taking: try checked(socket(AF_BLUETOOTH, type, BTPROTO_L2CAP)))
    try file.bind(to: local, .l2cap(psm: nil))
    try file.connect(to: device, .l2cap(psm: unsecuredPSM), by: deadline, unless: wakeUp)
    return file
  }

  private static let unsecuredPSM: UInt16 = 0x21

  /// The maximum time for an attempt to open a channel on an existing link, in milliseconds.
  private static let linkedMilliseconds = 3000

  /// Returns the port of a socket that is bound to `port`; an open number is replaced by the one that the kernel has chosen.
  ///
  /// Source: getsockname(2).
  package func boundPort(_ port: BluetoothPort) throws(TransportError) -> BluetoothPort {
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

  /// Returns a listening Bluetooth socket, and the port at which it listens.
  ///
  /// - Parameters:
  ///   - address: the address of a local adapter, or any.
  ///   - security: the minimum security of a peer's link, which the kernel enforces before it accepts the peer.
  package static func listen(
    at address: BluetoothAddress, _ port: BluetoothPort, adapter: UInt16?, security: Endpoint.Security, backlog: Int
  ) throws(TransportError) -> (OpenFile, BluetoothPort) {
    let file = try bluetoothSocket(port)
    let local = try LocalAdapter.bindingAddress(adapter: adapter, address: address)
    try file.bind(to: local, port)
    try file.require(security)
    try file.offerLargestPackets(port)
    try file.listen(backlog: backlog)
    return (file, try file.boundPort(port))
  }

  /// The maximum byte count of a packet that this end accepts.
  ///
  /// It is the largest possible value. A message that is too long then arrives and is rejected with an answer, instead of being
  /// dropped by the kernel silently.
  private static let receivingPacketByteCount: UInt16 = .max

  /// Sets the minimum security of the link. Source: BT_SECURITY.
  package func require(_ security: Endpoint.Security) throws(TransportError) {
    let level =
      switch security {
      case .low: BT_SECURITY_LOW
      case .medium: BT_SECURITY_MEDIUM
      case .high: BT_SECURITY_HIGH
      }
    try setOption(SOL_BLUETOOTH, BT_SECURITY, to: bt_security(level: UInt8(level), key_size: 0))
  }

  /// Offers the peer packets of any length, on the protocols that have packets. The socket is bound and not connected yet.
  ///
  /// Source: L2CAP_OPTIONS for BR/EDR, BT_RCVMTU for LE.
  package func offerLargestPackets(_ port: BluetoothPort) throws(TransportError) {
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

  /// Returns the maximum byte count of a packet in each direction: the size offered to the peer, and the size the peer offered.
  ///
  /// Source: L2CAP_OPTIONS for BR/EDR; BT_RCVMTU and BT_SNDMTU for LE. Returns nil for protocols without packets.
  package func packetLimits(_ port: BluetoothPort) throws(TransportError) -> PacketLimits? {
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

  /// Returns the error with which a pending connection ended, or 0. Source: SO_ERROR.
  package func pendingError() throws(TransportError) -> CInt {
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

/// The maximum byte count of a packet on a connection: the maximum transmission units (MTU) of L2CAP.
package struct PacketLimits: Sendable, Equatable {
  /// The maximum byte count of a packet that this end accepts.
  package let receivingByteCount: Int
  /// The maximum byte count of a packet that the peer accepts.
  package let sendingByteCount: Int
}
