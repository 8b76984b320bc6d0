import CBlueZ
import Glibc
import HoldfastLinux

extension Connection {
  /// Connects to a Bluetooth peer, over the adapter and with the security of `endpoint`. If the port is open, it asks the peer.
  ///
  /// A kernel refuses a channel on a link whose encryption began so recently that it does not know the key's size yet, and the link
  /// ends with the refusal. An attempt over BR/EDR that follows a refusal therefore holds the link by a file of its own: if it is
  /// refused once more, the link stays, and the next attempt finds it encrypted.
  ///
  /// The air takes time, so an attempt that has none would only call the peer in vain: no socket is opened for it.
  package static func connect(
    to device: BluetoothAddress, _ port: BluetoothPort, from endpoint: Endpoint, by deadline: Deadline,
    unless wakeUp: WakeUp?
  ) throws(TransportError) -> Connection {
    guard !deadline.hasPassed else { throw .timedOutWaiting }
    let port =
      try port.isOpen
      ? announcedPort(like: port, of: device, adapter: endpoint.adapter, by: deadline, unless: wakeUp) : port
    let radio = port.scheme.radio
    var link: OpenFile?
    var wasRefused = false
    return try OpenFile.retrying(over: radio, by: deadline, unless: wakeUp) { milliseconds throws(TransportError) in
      let file = try OpenFile.bluetoothSocket(port)
      let local = try LocalAdapter.bindingAddress(adapter: endpoint.adapter, address: .any)
      if wasRefused, link == nil, radio == .classic {
        link = try? OpenFile.link(to: device, from: local, by: deadline, unless: wakeUp)
      }
      // The socket is always bound, because an LE socket has no address type before.
      try file.bind(to: local, port.local)
      if let security = endpoint.security { try file.require(security) }
      try file.offerLargestPackets(port)
      do throws(TransportError) {
        try file.connect(to: device, port, by: deadline, attemptMilliseconds: milliseconds, unless: wakeUp)
      } catch {
        wasRefused = error.isRefusal(over: radio)
        throw error
      }
      return Connection(file: file, scheme: port.scheme, port: port)
    }
  }

  private static func announcedPort(
    like port: BluetoothPort, of device: BluetoothAddress, adapter: UInt16?, by deadline: Deadline,
    unless wakeUp: WakeUp?
  ) throws(TransportError) -> BluetoothPort {
    do throws(TransportError) {
      let ports = try ServiceDiscovery.query(device, adapter: adapter, by: deadline, unless: wakeUp)
      if let announced = ports.first(where: { $0.local == port }) { return announced }
    } catch .refused {
      // The peer has no SDP server.
    }
    throw .notAnnounced
  }

  /// Returns the maximum byte count of a packet in each direction; nil if the transport has no such limit.
  ///
  /// - Throws: ``TransportError/closed`` if the connection has ended.
  package func packetLimits() throws(TransportError) -> PacketLimits? {
    guard let port else { return nil }
    return try file.packetLimits(port)
  }
}

extension OpenFile {
  /// Makes attempts to connect until one succeeds, another one cannot help, or `deadline` has passed.
  ///
  /// Over Low Energy, a peer may have lost its link to another host a moment ago and not advertise again yet. Over BR/EDR, a link
  /// whose last channel was closed ends two seconds later, and takes an attempt with it that has just begun. An adapter says that
  /// the peer is absent once it has called it for its page timeout, so an attempt that took as long and found the peer
  /// unreachable is not repeated.
  ///
  /// - Parameters:
  ///   - refusalLimit: the number of refusals after which no further attempt is made.
  ///   - pageTimeoutMilliseconds: the time for which an adapter calls an absent peer over BR/EDR, in milliseconds.
  ///   - wakeUp: ends a pause between attempts when it is raised; nil for nothing.
  ///   - attempt: connects; its argument is the maximum time for a link, in milliseconds.
  package static func retrying<Result>(
    over radio: Scheme.Radio?, by deadline: Deadline, refusalLimit: Int = 3,
    pageTimeoutMilliseconds: Int = defaultPageTimeoutMilliseconds, unless wakeUp: WakeUp?,
    _ attempt: (Int) throws(TransportError) -> Result
  ) throws(TransportError) -> Result {
    let isLowEnergy = radio == .lowEnergy
    var attemptMilliseconds = isLowEnergy ? 2000 : Int.max
    var reason: TransportError?
    var refusals = 0
    while true {
      let pageTimeout = Deadline(afterMilliseconds: pageTimeoutMilliseconds)
      do throws(TransportError) { return try attempt(attemptMilliseconds) } catch {
        // The time that is over says less than the reason of an earlier attempt.
        if error != .timedOutWaiting || reason == nil { reason = error }
        let isRefusal = error.isRefusal(over: radio)
        if isRefusal { refusals += 1 }
        let isAbsent = error == .unreachable && !isLowEnergy && pageTimeout.hasPassed
        guard isRefusal ? refusals < refusalLimit : error.mayPass, !isAbsent, !deadline.hasPassed
        else { throw reason ?? error }
      }
      if isLowEnergy { attemptMilliseconds = 4000 }
      try pause(milliseconds: min(retryMilliseconds, deadline.remainingMilliseconds), unless: wakeUp)
    }
  }

  /// The pause between two attempts, in milliseconds.
  private static let retryMilliseconds = 100
  /// The page timeout that adapters have unless they are told another: 0x2000 slots of 0.625 ms.
  ///
  /// Source: Bluetooth Core 5.4, volume 4 part E, section 6.6.
  package static let defaultPageTimeoutMilliseconds = 0x2000 * 625 / 1000
}

extension TransportError {
  /// Whether an attempt to connect over Bluetooth that failed with this error may succeed a moment later: the peer is not
  /// connectable yet, the link was lost during the attempt, or the adapter is still busy with another attempt.
  fileprivate var mayPass: Bool {
    switch self {
    case .unreachable, .linkLost, .closed, .timedOutWaiting, .addressInUse, .other(errno: EALREADY): true
    // The kernel's errno for the status "connection failed to be established" (0x3e), which it does not translate.
    case .other(errno: ENOSYS): true
    default: false
    }
  }

  /// Whether the peer refused the channel; over BR/EDR, also whether the link ended for its security. Both also happen while the
  /// peer's kernel is not ready.
  fileprivate func isRefusal(over radio: Scheme.Radio?) -> Bool {
    self == .refused || self == .notSecured && radio != .lowEnergy
  }
}

/// A Bluetooth adapter of this machine, with the properties that a connection needs. One ioctl reads them, whereas ``Adapter``
/// uses the management interface.
struct LocalAdapter {
  let number: UInt16
  let address: BluetoothAddress
  let isUp: Bool

  /// Reads the adapter `hci<number>`.
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

  /// Returns whether an adapter of this host has an established Low Energy link to `host`.
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
  /// The ioctl HCIGETCONNLIST: `_IOR('H', 212, int)`.
  private static let readLinks: UInt = 0x8004_48d4
  /// The link type LE_LINK of the kernel.
  private static let lowEnergyLink: UInt8 = 0x80
  /// The state BT_CONNECTED of the kernel.
  private static let connectedState: UInt16 = 1

  /// All adapters of this machine.
  private static var all: [LocalAdapter] {
    (0..<UInt16(HCI_MAX_DEV)).compactMap { try? LocalAdapter(number: $0) }
  }

  /// Returns the local address to bind a socket to: the named adapter's, the given one, or any.
  ///
  /// - Throws: ``TransportError/noAdapter`` if no adapter matches, ``TransportError/adapterDown`` if the matching one is powered
  ///   off, ``TransportError/adapterBlocked`` if rfkill blocks it.
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
