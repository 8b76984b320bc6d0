import Glibc

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
  public func packetLimits() throws(TransportError) -> PacketLimits? {
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
