import Glibc

/// A local Bluetooth adapter, as the kernel reports it.
package struct Adapter: Sendable, Equatable {
  /// The adapter's number, 0 for `hci0`.
  package let number: UInt16
  /// The adapter's public address; ``BluetoothAddress/any`` if it has none.
  package let address: BluetoothAddress
  /// The adapter's name; empty if it has none.
  package let name: String
  /// The settings that the adapter supports.
  package let supported: AdapterSettings
  /// The settings that are on now.
  package let settings: AdapterSettings
  /// The block that keeps the adapter from being powered; nil if there is none.
  package let block: RadioBlock?

  package init(
    number: UInt16, address: BluetoothAddress, name: String, supported: AdapterSettings, settings: AdapterSettings,
    block: RadioBlock?
  ) {
    (self.number, self.address, self.name, self.supported, self.settings, self.block) = (
      number, address, name, supported, settings, block
    )
  }
}

/// The settings of an adapter. The bits are those of the management interface.
///
/// Source: BlueZ, mgmt(7), "Read Controller Information".
package struct AdapterSettings: OptionSet, Sendable, Hashable {
  /// The bits of the management interface.
  package let rawValue: UInt32

  /// Creates the set of the settings whose bits are set in `rawValue`.
  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// The adapter is powered on.
  package static let powered = AdapterSettings(rawValue: 1 << 0)
  /// The adapter accepts connections over classic Bluetooth.
  package static let connectable = AdapterSettings(rawValue: 1 << 1)
  /// The adapter is visible to searches over classic Bluetooth.
  package static let discoverable = AdapterSettings(rawValue: 1 << 3)
  /// The adapter keeps pairings.
  package static let bondable = AdapterSettings(rawValue: 1 << 4)
  /// The adapter pairs without a PIN: Secure Simple Pairing.
  package static let secureSimplePairing = AdapterSettings(rawValue: 1 << 6)
  /// Classic Bluetooth (BR/EDR) is on.
  package static let classic = AdapterSettings(rawValue: 1 << 7)
  /// Bluetooth Low Energy is on.
  package static let lowEnergy = AdapterSettings(rawValue: 1 << 9)
  /// The adapter advertises.
  package static let advertising = AdapterSettings(rawValue: 1 << 10)
}

extension Adapter {
  /// Returns every adapter of this host, by number. It needs no privilege.
  ///
  /// - Throws: ``BluetoothError/unsupported`` if the kernel has no Bluetooth, ``BluetoothError/timedOut``.
  package static func all() throws(BluetoothError) -> [Adapter] {
    try all(try ManagementSocket(), radios: RadioBlock.folder)
  }

  /// Returns every adapter that the kernel reports over `management`, by number. The folder `radios` has those of sysfs.
  ///
  /// - Throws: ``BluetoothError/timedOut``, ``BluetoothError/malformed``.
  package static func all(_ management: ManagementSocket, radios: String) throws(BluetoothError) -> [Adapter] {
    var adapters: [Adapter] = []
    for number in try numbers(management) {
      // An adapter that was unplugged since the list was read is skipped.
      do throws(BluetoothError) { adapters.append(try Adapter(number: number, management, radios)) } catch .noAdapter {
      }
    }
    return adapters
  }

  /// Returns the adapter to use: the one with that number; if `number` is nil, the first that is powered, else the first.
  ///
  /// - Throws: ``BluetoothError/noAdapter``, and the errors of ``all()``.
  package static func chosen(_ number: UInt16?) throws(BluetoothError) -> Adapter {
    guard let adapter = chosen(number, of: try all()) else { throw .noAdapter }
    return adapter
  }

  static func chosen(_ number: UInt16?, of adapters: [Adapter]) -> Adapter? {
    guard let number else { return adapters.first { $0.settings.contains(.powered) } ?? adapters.first }
    return adapters.first { $0.number == number }
  }

  /// Checks that the adapter is powered.
  ///
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

  private init(number: UInt16, _ management: ManagementSocket, _ radios: String) throws(BluetoothError) {
    let information = try management.execute(ManagementCommand(.readInformation, adapter: number))
    let block = RadioBlock.ofAdapter(number, in: radios)
    guard let adapter = Adapter(number: number, information, block: block) else { throw .malformed }
    self = adapter
  }

  /// Reads the result of Read Controller Information; returns nil unless it has exactly 280 bytes.
  package init?(number: UInt16, _ information: ArraySlice<UInt8>, block: RadioBlock?) {
    var reader = ByteReader(information)
    // The skipped fields: version and manufacturer after the address, class of device after the settings, short name at the end.
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

/// A block that silences a radio.
///
/// Source: Linux, Documentation/driver-api/rfkill.rst.
package enum RadioBlock: Sendable, Hashable {
  /// A software block, which `rfkill unblock` removes.
  case soft
  /// A hardware block: a switch or key of the machine.
  case hard

  /// The folder of sysfs that has one for each adapter.
  static var folder: String { "/sys/class/bluetooth" }

  /// Returns the block on the adapter `number` according to sysfs; nil if there is none.
  static func ofAdapter(_ number: UInt16, in radios: String = folder) -> RadioBlock? {
    let folder = "\(radios)/hci\(number)"
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

  /// Returns whether the file at `path` begins with the digit 1.
  private static func isSet(_ path: String) -> Bool {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    let file = OpenFile(taking: descriptor)
    var digit: UInt8 = 0
    return unsafe read(file.descriptor, &digit, 1) == 1 && digit == UInt8(ascii: "1")
  }
}

extension BluetoothAddress {
  /// Reads six bytes in the order that the radio and the kernel use.
  package init(leastSignificantFirst bytes: ArraySlice<UInt8>) {
    precondition(bytes.count == 6)
    self.init(value: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// The six bytes in the order that the radio and the kernel use.
  var leastSignificantFirst: [UInt8] {
    stride(from: 0, to: 48, by: 8).map { UInt8(truncatingIfNeeded: value >> UInt64($0)) }
  }
}

/// A reason why the kernel's management interface or the SDP server failed.
package enum BluetoothError: Error, Equatable, Sendable {
  /// The kernel has no Bluetooth.
  case unsupported
  /// The operation needs CAP_NET_ADMIN, or membership in the group that may use the SDP server.
  case permissionDenied
  /// There is no such adapter.
  case noAdapter
  /// The adapter is powered off.
  case adapterDown
  /// The adapter is blocked by rfkill.
  case adapterBlocked
  /// The adapter does not support the operation, or is not set up for it: for example, Low Energy is off.
  case adapterUnable
  /// Another process performs the same operation on this adapter.
  case busy
  /// Every advertising instance is in use.
  case noInstance
  /// No SDP server on this host accepts records.
  case noServer
  /// The answer did not arrive in time.
  case timedOut
  /// The answer is malformed.
  case malformed
  /// The kernel refused with another status code of the management interface.
  case refused(status: UInt8)
  /// The operating system reported another error.
  case other(errno: CInt)

  /// Maps `status`, a status code of the management interface, to an error.
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

  /// Maps an error of the socket to an error of this kind.
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
