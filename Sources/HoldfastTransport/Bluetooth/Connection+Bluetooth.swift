extension Connection {
  /// Connects to a Bluetooth device, over the adapter and with the security that `endpoint` asks for; the device is asked for a port
  /// that is left open.
  static func connect(
    to device: BluetoothAddress, _ port: BluetoothPort, from endpoint: Endpoint, by deadline: Deadline
  ) throws(TransportError) -> Connection {
    let port = try port.isOpen ? announcedPort(like: port, of: device, adapter: endpoint.adapter, by: deadline) : port
    let file = try OpenFile.bluetoothSocket(port)
    let local = try LocalAdapter.bindingAddress(adapter: endpoint.adapter, address: .any)
    // Always bound: an LE socket has no type before.
    try file.bind(to: local, port.local)
    if let security = endpoint.security { try file.require(security) }
    try file.offerLargestPackets(port)
    try file.connect(to: device, port, by: deadline)
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
