import CBlueZ
import Glibc
import HoldfastLinux

/// A socket of the kernel's Bluetooth management interface. It works next to bluetoothd, if that runs.
///
/// Listing the adapters needs no privilege; everything else, and every event, needs CAP_NET_ADMIN.
/// Source: BlueZ, mgmt(7).
package final class ManagementSocket: Sendable {
  private let file: OpenFile
  /// The maximum time for an answer of the kernel. The slowest command, powering an adapter up, is not used here.
  private let answerMilliseconds: Int
  /// The maximum byte count of an event. The longest found are peer reports with extended advertising, about 1,700 bytes.
  private static let maximumEventByteCount = 4096

  /// Takes over one end of a packet connection.
  package init(file: OpenFile, answerMilliseconds: Int = 5000) {
    (self.file, self.answerMilliseconds) = (file, answerMilliseconds)
  }

  /// Opens the management interface.
  ///
  /// - Throws: ``BluetoothError/unsupported`` if the kernel has no Bluetooth.
  package convenience init() throws(BluetoothError) {
    do throws(TransportError) {
      let type = CInt(SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      let file = OpenFile(taking: try checked(socket(AF_BLUETOOTH, type, BTPROTO_HCI)))
      var address = sockaddr_hci()
      address.hci_family = sa_family_t(AF_BLUETOOTH)
      address.hci_dev = UInt16(HCI_DEV_NONE)
      address.hci_channel = UInt16(HCI_CHANNEL_CONTROL)
      let byteCount = socklen_t(MemoryLayout<sockaddr_hci>.size)
      try checked(
        unsafe withUnsafePointer(to: address) { address in
          unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe bind(file.descriptor, $0, byteCount)
          }
        })
      self.init(file: file)
    } catch { throw BluetoothError(error) }
  }

  /// Sends `command` to the kernel, whose answer is an event.
  func send(_ command: ManagementCommand) throws(BluetoothError) {
    let bytes = command.bytes
    while unsafe Glibc.send(file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) < 0 {
      guard errno == EINTR else { throw BluetoothError(TransportError(errno: errno)) }
    }
  }

  /// Sends `command` to the kernel and returns its result. Events that arrive before the result go to `meanwhile`.
  ///
  /// - Throws: the error for the result's status, ``BluetoothError/timedOut``.
  @discardableResult
  package func execute(
    _ command: ManagementCommand, timeoutMilliseconds: Int? = nil,
    meanwhile: (UInt16, ManagementEvent) -> Void = { _, _ in }
  ) throws(BluetoothError) -> ArraySlice<UInt8> {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds ?? answerMilliseconds)
    try send(command)
    while let (adapter, event) = try next(by: deadline) {
      guard case .done(command.code.rawValue, let status, let result) = event, adapter == command.adapter else {
        meanwhile(adapter, event)
        continue
      }
      guard status == 0 else { throw BluetoothError(status: status) }
      return result
    }
    throw .timedOut
  }

  /// Returns the next event and its adapter; nil if `deadline` has passed or `wakeUp` was raised.
  func next(
    by deadline: Deadline, unless wakeUp: WakeUp? = nil
  ) throws(BluetoothError) -> (adapter: UInt16, event: ManagementEvent)? {
    var buffer = [UInt8](repeating: 0, count: ManagementSocket.maximumEventByteCount)
    while try wait(by: deadline, unless: wakeUp) {
      let count = unsafe recv(file.descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count == 0 { throw .malformed }
      if count < 0 {
        guard errno == EINTR || errno == EAGAIN else { throw BluetoothError(TransportError(errno: errno)) }
      } else if let event = ManagementEvent.read(buffer[..<count]) {
        return event
      }
    }
    return nil
  }

  private func wait(by deadline: Deadline, unless wakeUp: WakeUp?) throws(BluetoothError) -> Bool {
    guard !deadline.hasPassed else { return false }
    do throws(TransportError) {
      return try file.wait(for: POLLIN, until: deadline, unless: wakeUp) == .ready
    } catch { throw BluetoothError(error) }
  }
}

/// A command to the kernel's Bluetooth management interface.
///
/// Source: BlueZ, mgmt(7): u16 code, u16 adapter, u16 number of bytes that follow, all little-endian.
package struct ManagementCommand {
  package enum Code: UInt16 {
    case readAdapters = 0x0003
    case readInformation = 0x0004
    case disconnect = 0x0014
    case readConnections = 0x0015
    case confirm = 0x001c
    case startDiscovery = 0x0023
    case stopDiscovery = 0x0024
    case confirmName = 0x0025
    case readAdvertisingFeatures = 0x003d
    case addAdvertising = 0x003e
    case removeAdvertising = 0x003f
  }

  /// The adapter number in commands that concern no adapter.
  static let noAdapter: UInt16 = 0xffff

  let code: Code
  let adapter: UInt16
  let parameters: [UInt8]

  package init(_ code: Code, adapter: UInt16, _ parameters: [UInt8] = []) {
    self.code = code
    self.adapter = adapter
    self.parameters = parameters
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: code.rawValue)
    bytes.append(littleEndian: adapter)
    bytes.append(littleEndian: UInt16(parameters.count))
    return bytes + parameters
  }
}

/// An event of the kernel's Bluetooth management interface.
///
/// Source: BlueZ, mgmt(7), "Events".
package enum ManagementEvent: Equatable {
  /// A command is complete: its code, its status (0 is success), and its result.
  case done(code: UInt16, status: UInt8, result: ArraySlice<UInt8>)
  case confirmationRequest(RemoteDevice, isJustWorks: Bool)
  case deviceFound(DeviceReport)
  case discovering(Bool)
  /// The settings of the adapter have changed.
  case settings(AdapterSettings)
  /// A link was established, by this host (`isOurs`) or by the other one.
  case linkBegun(RemoteDevice, isOurs: Bool)
  case linkEnded(RemoteDevice)
  /// A peer that was known by a random address has shown its identity address.
  case identified(BluetoothAddress, as: RemoteDevice)
  case advertisingRemoved(instance: UInt8)
  case other

  /// Reads one event and the number of its adapter; returns nil for bytes that are not an event.
  package static func read(_ bytes: ArraySlice<UInt8>) -> (adapter: UInt16, event: ManagementEvent)? {
    var reader = ByteReader(bytes)
    guard let code = reader.littleEndian(UInt16.self), let adapter = reader.littleEndian(UInt16.self),
      let count = reader.littleEndian(UInt16.self), reader.rest.count == Int(count),
      let event = ManagementEvent(code: code, &reader)
    else { return nil }
    return (adapter, event)
  }

  private init?(code: UInt16, _ reader: inout ByteReader) {
    switch code {
    case 0x0001, 0x0002:
      guard let code = reader.littleEndian(UInt16.self), let status = reader.littleEndian(UInt8.self) else {
        return nil
      }
      self = .done(code: code, status: status, result: reader.rest)
    case 0x0006:
      guard let settings = reader.littleEndian(UInt32.self), reader.rest.isEmpty else { return nil }
      self = .settings(AdapterSettings(rawValue: settings))
    case 0x000b:
      guard let device = RemoteDevice(&reader), let flags = reader.littleEndian(UInt32.self),
        let count = reader.littleEndian(UInt16.self), reader.rest.count == Int(count)
      else { return nil }
      self = .linkBegun(device, isOurs: flags & 8 != 0)
    case 0x000c:
      guard let device = RemoteDevice(&reader), reader.rest.count == 1 else { return nil }
      self = .linkEnded(device)
    case 0x000f:
      guard let device = RemoteDevice(&reader), let hint = reader.littleEndian(UInt8.self), reader.rest.count == 4
      else { return nil }
      self = .confirmationRequest(device, isJustWorks: hint == 1)
    case 0x0012:
      guard let report = DeviceReport(&reader) else { return nil }
      self = .deviceFound(report)
    case 0x0013:
      guard reader.bytes(1) != nil, let state = reader.littleEndian(UInt8.self), reader.rest.isEmpty else { return nil }
      self = .discovering(state != 0)
    case 0x0018:
      guard reader.bytes(1) != nil, let random = reader.bytes(6), let device = RemoteDevice(&reader),
        reader.rest.count == 16
      else { return nil }
      self = .identified(BluetoothAddress(leastSignificantFirst: random), as: device)
    case 0x0024:
      guard let instance = reader.littleEndian(UInt8.self), reader.rest.isEmpty else { return nil }
      self = .advertisingRemoved(instance: instance)
    default:
      self = .other
    }
  }
}

/// A peer's Bluetooth address and its kind: seven bytes in the management interface.
package struct RemoteDevice: Sendable, Hashable {
  /// A kind of address. The raw value is the management interface's.
  package enum Kind: UInt8, Sendable, Hashable {
    /// Classic Bluetooth.
    case classic = 0
    /// Low Energy, with an address that was assigned to the manufacturer.
    case lowEnergyPublic = 1
    /// Low Energy, with an address that the peer generated.
    case lowEnergyRandom = 2
  }

  /// Whether the peer is reached over Low Energy.
  var isLowEnergy: Bool { kind != .classic }

  /// The address of 48 bits.
  package let address: BluetoothAddress
  /// The kind of the address.
  package let kind: Kind

  package init(address: BluetoothAddress, kind: Kind) {
    self.address = address
    self.kind = kind
  }

  package init?(_ reader: inout ByteReader) {
    guard let address = reader.bytes(6), let kind = reader.littleEndian(UInt8.self).flatMap(Kind.init) else {
      return nil
    }
    self.init(address: BluetoothAddress(leastSignificantFirst: address), kind: kind)
  }

  package var bytes: [UInt8] {
    address.leastSignificantFirst + [kind.rawValue]
  }
}

/// A report about one peer from a discovery.
package struct DeviceReport: Equatable {
  package let device: RemoteDevice
  /// The strength of its signal in dBm; nil if unknown.
  package let signalStrength: Int8?
  /// Whether the kernel asks if the peer's name is known already, or should be requested.
  package let wantsName: Bool
  package let isConnectable: Bool
  package let data: ArraySlice<UInt8>

  package init?(_ reader: inout ByteReader) {
    guard let device = RemoteDevice(&reader), let strength = reader.littleEndian(Int8.self),
      let flags = reader.littleEndian(UInt32.self), let count = reader.littleEndian(UInt16.self),
      reader.rest.count == Int(count)
    else { return nil }
    self.device = device
    signalStrength = strength == 127 ? nil : strength
    wantsName = flags & 1 != 0
    isConnectable = flags & 4 == 0
    data = reader.rest
  }
}

/// A reader of untrusted bytes. A read beyond the end returns nil and never crashes.
package struct ByteReader {
  package private(set) var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// Reads the next `count` bytes.
  package mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard 0...rest.count ~= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  /// Reads the next integer, least significant byte first, as the management interface writes it.
  package mutating func littleEndian<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
    bigEndian(Number.self)?.byteSwapped
  }

  /// Reads the next integer, most significant byte first, as SDP writes it.
  package mutating func bigEndian<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
    bytes(Number.bitWidth / 8)?.reduce(0) { number, byte in number << 8 | Number(truncatingIfNeeded: byte) }
  }
}

extension [UInt8] {
  package mutating func append(littleEndian number: some FixedWidthInteger) {
    for shift in stride(from: 0, to: number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
  }

  package mutating func append(bigEndian number: some FixedWidthInteger) {
    append(littleEndian: number.byteSwapped)
  }
}
