extension FoundDevice {
  /// Where the device says that its Holdfast devices listen; nowhere where it has none.
  ///
  /// By Low Energy it has said so already. By classic Bluetooth it is asked by SDP, unless it named all its services.
  /// - Parameters:
  ///   - adapter: the local adapter to ask over, and to put into the endpoints; nil leaves the choice to the system.
  ///   - deadline: until when it may answer.
  /// - Throws: what ``ServiceDiscovery/query(_:adapter:by:)`` throws.
  public func endpoints(adapter: UInt16?, by deadline: Deadline) throws(TransportError) -> [Endpoint] {
    try ports(adapter: adapter, by: deadline).map {
      Endpoint(address: .bluetooth(device.address, $0), adapter: adapter)
    }
  }

  private func ports(adapter: UInt16?, by deadline: Deadline) throws(TransportError) -> [BluetoothPort] {
    switch device.kind {
    case .classic:
      guard !excludesService else { return [] }
      return try ServiceDiscovery.query(
        device.address, adapter: adapter, by: deadline)
    case .lowEnergyPublic, .lowEnergyRandom:
      guard namesService else { return [] }
      return psms.map { .lowEnergy(psm: UInt16($0), device.kind == .lowEnergyPublic ? .public : .random) }
    }
  }
}
