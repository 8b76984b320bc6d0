import Glibc

extension OpenFile {
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
}
