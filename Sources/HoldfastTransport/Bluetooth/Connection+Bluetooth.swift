import CBlueZ
import Glibc
import HoldfastLinux

extension Connection {
  /// Connects to a Bluetooth device, over the adapter and with the security that `endpoint` asks for; the device is asked for a port
  /// that is left open.
  ///
  /// A device that is reached by Low Energy may have lost its link to another host a moment ago and not advertise yet. It is tried
  /// again until `deadline`, unless trying again cannot help.
  static func connect(
    to device: BluetoothAddress, _ port: BluetoothPort, from endpoint: Endpoint, by deadline: Deadline
  ) throws(TransportError) -> Connection {
    let port = try port.isOpen ? announcedPort(like: port, of: device, adapter: endpoint.adapter, by: deadline) : port
    guard port.isLowEnergy else { return try attempt(device, port, from: endpoint, by: deadline) }
    var attemptMilliseconds = 2000
    while true {
      do throws(TransportError) {
        return try attempt(device, port, from: endpoint, by: deadline, attemptMilliseconds: attemptMilliseconds)
      } catch {
        guard error.mayPass, !deadline.hasPassed else { throw error }
      }
      attemptMilliseconds = 4000
      try pause(milliseconds: min(retryMilliseconds, deadline.remainingMilliseconds))
    }
  }

  /// Between two attempts over Low Energy.
  private static let retryMilliseconds = 100

  /// Tries it once; `attemptMilliseconds` as ``OpenFile/connect(to:_:by:attemptMilliseconds:)`` has it.
  private static func attempt(
    _ device: BluetoothAddress, _ port: BluetoothPort, from endpoint: Endpoint, by deadline: Deadline,
    attemptMilliseconds: Int = .max
  ) throws(TransportError) -> Connection {
    let file = try OpenFile.bluetoothSocket(port)
    let local = try LocalAdapter.bindingAddress(adapter: endpoint.adapter, address: .any)
    // Always bound: an LE socket has no type before.
    try file.bind(to: local, port.local)
    if let security = endpoint.security { try file.require(security) }
    try file.offerLargestPackets(port)
    try file.connect(to: device, port, by: deadline, attemptMilliseconds: attemptMilliseconds)
    return Connection(file: file, framing: port.framing, port: port)
  }

  private static func announcedPort(
    like port: BluetoothPort, of device: BluetoothAddress, adapter: UInt16?, by deadline: Deadline
  ) throws(TransportError) -> BluetoothPort {
    do throws(TransportError) {
      let ports = try ServiceDiscovery.query(device, adapter: adapter, by: deadline)
      if let announced = ports.first(where: { $0.local == port }) { return announced }
    } catch .refused {
      // It has no SDP server.
    }
    throw .notAnnounced
  }

  /// The most bytes of a packet each way; nil where the transport has no such limit.
  ///
  /// - Throws: ``TransportError/closed`` where the connection has ended.
  package func packetLimits() throws(TransportError) -> PacketLimits? {
    guard let port else { return nil }
    return try file.packetLimits(port)
  }
}

extension TransportError {
  /// Whether an attempt to connect by Low Energy that ended so may succeed a moment later: the device does not advertise yet, the
  /// link went in the middle, or the adapter is still busy with another attempt.
  var mayPass: Bool {
    switch self {
    case .unreachable, .linkLost, .closed, .timedOutWaiting, .addressInUse: true
    // The kernel's answer to a link that failed to be established (0x3e), which it has no name for.
    case .other(errno: ENOSYS): true
    default: false
    }
  }
}

/// A Bluetooth adapter of this machine, as far as making a connection needs to know it: one ioctl, where ``Adapter`` asks the
/// management interface for everything.
struct LocalAdapter {
  let number: UInt16
  let address: BluetoothAddress
  let isUp: Bool

  /// The adapter `hci<number>`.
  ///
  /// Source: the ioctl HCIGETDEVINFO, which needs no privilege.
  /// - Throws: ``TransportError/noAdapter``, ``TransportError/unsupported``.
  init(number: UInt16) throws(TransportError) {
    var information = hci_dev_info()
    guard unsafe hci_devinfo(CInt(number), &information) == 0 else {
      throw errno == ENODEV ? .noAdapter : TransportError(errno: errno)
    }
    self.number = number
    address = BluetoothAddress(information.bdaddr)
    isUp = information.flags & 1 << UInt32(HCI_UP) != 0
  }

  /// Whether an adapter of this host has a link by Low Energy to `host` that is up.
  ///
  /// Source: the ioctl HCIGETCONNLIST, which needs no privilege: the adapter's number and a count, 16 bits each, then 16 bytes
  /// for each link: handle, address, type, direction, state, mode.
  static func hasLowEnergyLink(to host: BluetoothAddress) -> Bool {
    let type = CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue)
    guard let file = try? OpenFile(taking: checked(socket(AF_BLUETOOTH, type, BTPROTO_HCI))) else { return false }
    return all.contains { adapter in
      var list = [UInt8](repeating: 0, count: 4 + 16 * maximumLinkCount)
      list.replaceSubrange(
        0..<4, with: [adapter.number, UInt16(maximumLinkCount)].flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] })
      guard unsafe list.withUnsafeMutableBytes({ unsafe ioctl(file.descriptor, readLinks, $0.baseAddress!) }) == 0
      else { return false }
      var reader = ByteReader(list.dropFirst(2))
      for _ in 0..<(reader.littleEndian(UInt16.self) ?? 0) {
        guard reader.bytes(2) != nil, let address = reader.bytes(6), let type = reader.littleEndian(UInt8.self),
          reader.bytes(1) != nil, let state = reader.littleEndian(UInt16.self), reader.bytes(4) != nil
        else { return false }
        let isUp = type == lowEnergyLink && state == connectedState
        if isUp && BluetoothAddress(leastSignificantFirst: address) == host { return true }
      }
      return false
    }
  }

  private static let maximumLinkCount = 64
  /// HCIGETCONNLIST: `_IOR('H', 212, int)`.
  private static let readLinks: UInt = 0x8004_48d4
  /// The kernel's LE_LINK.
  private static let lowEnergyLink: UInt8 = 0x80
  /// The kernel's BT_CONNECTED.
  private static let connectedState: UInt16 = 1

  /// Every adapter there is.
  private static var all: [LocalAdapter] {
    (0..<UInt16(HCI_MAX_DEV)).compactMap { try? LocalAdapter(number: $0) }
  }

  /// The local address to bind a socket to: the named adapter's, the given one, or any.
  ///
  /// - Throws: ``TransportError/noAdapter`` where there is none that is meant, ``TransportError/adapterDown`` where there is and it is
  ///   powered off, ``TransportError/adapterBlocked`` where rfkill keeps it so.
  static func bindingAddress(
    adapter number: UInt16?, address: BluetoothAddress
  ) throws(TransportError) -> BluetoothAddress {
    let candidates = if let number { [try LocalAdapter(number: number)] } else { all }
    let meant = candidates.filter { address.isAny || $0.address == address }
    guard !meant.isEmpty else { throw .noAdapter }
    guard meant.contains(where: \.isUp) else {
      throw meant.contains { RadioBlock.ofAdapter($0.number) == nil } ? .adapterDown : .adapterBlocked
    }
    return number == nil ? address : meant[0].address
  }
}
