extension Adapter {
  /// Every adapter of this host, by number. It takes no privilege.
  ///
  /// - Throws: ``BluetoothError/unsupported`` where the kernel has no Bluetooth, ``BluetoothError/timedOut``.
  public static func all() throws(BluetoothError) -> [Adapter] {
    let management = try ManagementSocket()
    var adapters: [Adapter] = []
    for number in try numbers(management) {
      // One that is unplugged in this moment is none.
      do throws(BluetoothError) { adapters.append(try Adapter(number: number, management)) } catch .noAdapter {}
    }
    return adapters
  }

  /// The adapter to use: the one of that number, else the first that is powered, else the first.
  ///
  /// - Throws: ``BluetoothError/noAdapter``, and what ``all()`` throws.
  public static func chosen(_ number: UInt16?) throws(BluetoothError) -> Adapter {
    guard let adapter = chosen(number, of: try all()) else { throw .noAdapter }
    return adapter
  }

  static func chosen(_ number: UInt16?, of adapters: [Adapter]) -> Adapter? {
    guard let number else { return adapters.first { $0.settings.contains(.powered) } ?? adapters.first }
    return adapters.first { $0.number == number }
  }

  /// - Throws: ``BluetoothError/adapterDown``, ``BluetoothError/adapterBlocked``.
  func requirePower() throws(BluetoothError) {
    guard settings.contains(.powered) else { throw block == nil ? .adapterDown : .adapterBlocked }
  }

  private static func numbers(_ management: ManagementSocket) throws(BluetoothError) -> [UInt16] {
    var reader = ByteReader(
      try management.execute(ManagementCommand(.readAdapters, adapter: ManagementCommand.noAdapter)))
    guard let count = reader.littleEndian(UInt16.self), reader.rest.count == 2 * Int(count) else { throw .malformed }
    return (0..<count).compactMap { _ in reader.littleEndian(UInt16.self) }.sorted()
  }

  private init(number: UInt16, _ management: ManagementSocket) throws(BluetoothError) {
    let information = try management.execute(ManagementCommand(.readInformation, adapter: number))
    guard let adapter = Adapter(number: number, information, block: RadioBlock.ofAdapter(number)) else {
      throw .malformed
    }
    self = adapter
  }

  /// Reads what Read Controller Information returns; nil for anything but its 280 bytes.
  init?(number: UInt16, _ information: ArraySlice<UInt8>, block: RadioBlock?) {
    var reader = ByteReader(information)
    // After the address: version and manufacturer. After the settings: class of device. At the end: the short name.
    guard information.count == 280, let address = reader.bytes(6), reader.bytes(3) != nil,
      let supported = reader.littleEndian(UInt32.self), let settings = reader.littleEndian(UInt32.self),
      reader.bytes(3) != nil, let name = reader.bytes(249)
    else { return nil }
    self.init(
      number: number, address: BluetoothAddress(leastSignificantFirst: address),
      name: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self), supported: AdapterSettings(rawValue: supported),
      settings: AdapterSettings(rawValue: settings), block: block)
  }
}
