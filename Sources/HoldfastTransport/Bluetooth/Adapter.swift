import Glibc

/// A local Bluetooth adapter, as the kernel sees it.
package struct Adapter: Sendable, Equatable {
  /// 0 for `hci0`.
  package let number: UInt16
  /// Its public address; any where it has none.
  package let address: BluetoothAddress
  /// What it calls itself; empty where it has no name.
  package let name: String
  /// What it can do.
  package let supported: AdapterSettings
  /// What it is set to.
  package let settings: AdapterSettings
  /// What keeps it from being powered.
  package let block: RadioBlock?
}

/// Properties of an adapter. The bits are the management interface's.
///
/// Source: BlueZ, mgmt(7), "Read Controller Information".
package struct AdapterSettings: OptionSet, Sendable, Hashable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package static let powered = AdapterSettings(rawValue: 1 << 0)
  package static let connectable = AdapterSettings(rawValue: 1 << 1)
  package static let discoverable = AdapterSettings(rawValue: 1 << 3)
  package static let bondable = AdapterSettings(rawValue: 1 << 4)
  package static let secureSimplePairing = AdapterSettings(rawValue: 1 << 6)
  /// Classic Bluetooth.
  package static let classic = AdapterSettings(rawValue: 1 << 7)
  package static let lowEnergy = AdapterSettings(rawValue: 1 << 9)
  package static let advertising = AdapterSettings(rawValue: 1 << 10)
}

extension Adapter {
  /// Every adapter of this host, by number. It takes no privilege.
  ///
  /// - Throws: ``BluetoothError/unsupported`` where the kernel has no Bluetooth, ``BluetoothError/timedOut``.
  package static func all() throws(BluetoothError) -> [Adapter] {
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
  package static func chosen(_ number: UInt16?) throws(BluetoothError) -> Adapter {
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

/// What keeps a radio silent.
///
/// Source: Linux, Documentation/driver-api/rfkill.rst.
package enum RadioBlock: Sendable, Hashable {
  /// Software: `rfkill unblock` ends it.
  case soft
  /// A switch or key of the machine.
  case hard

  /// What blocks the adapter `number`, as sysfs says; nil where nothing does.
  static func ofAdapter(_ number: UInt16) -> RadioBlock? {
    let folder = "/sys/class/bluetooth/hci\(number)"
    for name in names(in: folder) where name.hasPrefix("rfkill") {
      if isSet("\(folder)/\(name)/hard") { return .hard }
      if isSet("\(folder)/\(name)/soft") { return .soft }
    }
    return nil
  }

  private static func names(in folder: String) -> [String] {
    guard let stream = unsafe opendir(folder) else { return [] }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      names.append(
        unsafe withUnsafeBytes(of: &entry.pointee.d_name) { name in
          unsafe String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names
  }

  /// Whether the file at `path` begins with the digit 1.
  private static func isSet(_ path: String) -> Bool {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    let file = OpenFile(taking: descriptor)
    var digit: UInt8 = 0
    return unsafe read(file.descriptor, &digit, 1) == 1 && digit == UInt8(ascii: "1")
  }
}

extension BluetoothAddress {
  /// Takes six bytes in the order in which the radio and the kernel have them.
  init(leastSignificantFirst bytes: ArraySlice<UInt8>) {
    precondition(bytes.count == 6)
    self.init(value: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// The six bytes in the order in which the radio and the kernel have them.
  var leastSignificantFirst: [UInt8] {
    stride(from: 0, to: 48, by: 8).map { UInt8(truncatingIfNeeded: value >> UInt64($0)) }
  }
}

/// Why the kernel's management interface or the SDP server did not do what was asked.
package enum BluetoothError: Error, Equatable, Sendable {
  /// The kernel has no Bluetooth.
  case unsupported
  /// It takes CAP_NET_ADMIN, or membership in the group that may use the SDP server.
  case permissionDenied
  /// There is no such adapter.
  case noAdapter
  /// The adapter is powered off.
  case adapterDown
  /// The adapter is blocked by rfkill.
  case adapterBlocked
  /// The adapter cannot do that, or is not set up to: Low Energy is off.
  case adapterUnable
  /// Somebody else is doing the same on this adapter.
  case busy
  /// Every advertising instance is taken.
  case noInstance
  /// No SDP server takes records on this host.
  case noServer
  /// The answer did not come in time.
  case timedOut
  /// The answer is not one.
  case malformed
  /// The kernel refused with another status of the management interface.
  case refused(status: UInt8)
  /// Anything else that the operating system answered.
  case other(errno: CInt)

  /// What `status` of the management interface means here.
  ///
  /// Source: BlueZ, mgmt(7), "Error Codes".
  init(status: UInt8) {
    self =
      switch status {
      case 0x01, 0x0b, 0x0c: .adapterUnable
      case 0x08: .timedOut
      case 0x0a: .busy
      case 0x0f: .adapterDown
      case 0x11: .noAdapter
      case 0x12: .adapterBlocked
      case 0x14: .permissionDenied
      default: .refused(status: status)
      }
  }

  /// What a fault of the socket means here.
  init(_ error: TransportError) {
    self =
      switch error {
      case .unsupported: .unsupported
      case .permissionDenied: .permissionDenied
      case .noAdapter, .notFound: .noAdapter
      case .adapterDown: .adapterDown
      case .adapterBlocked: .adapterBlocked
      case .timedOutWaiting, .timedOutReading, .timedOutSending: .timedOut
      case .other(let code): .other(errno: code)
      default: .malformed
      }
  }
}
