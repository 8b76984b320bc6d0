/// What the kernel's Bluetooth management interface says, as far as it matters here.
///
/// Source: BlueZ, mgmt(7), "Events".
enum ManagementEvent: Equatable {
  /// A command is done: its code, its status (0 is success), and what it returns.
  case done(code: UInt16, status: UInt8, result: ArraySlice<UInt8>)
  case confirmationRequest(RemoteDevice, isJustWorks: Bool)
  case deviceFound(DeviceReport)
  case discovering(Bool)
  /// What the adapter is set to has changed.
  case settings(AdapterSettings)
  /// A link is up, which this host began (`isOurs`) or the other one.
  case linkBegun(RemoteDevice, isOurs: Bool)
  case linkEnded(RemoteDevice)
  /// A device that was known by a random address has shown its true one.
  case identified(BluetoothAddress, as: RemoteDevice)
  case advertisingRemoved(instance: UInt8)
  case other

  /// Reads one event and the number of the adapter that it is of; nil for bytes that are none.
  static func read(_ bytes: ArraySlice<UInt8>) -> (adapter: UInt16, event: ManagementEvent)? {
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

/// The address of another device and how it is reached: seven bytes of the management interface.
public struct RemoteDevice: Sendable, Hashable {
  /// What kind of address it is. The raw value is the management interface's.
  public enum Kind: UInt8, Sendable, Hashable {
    /// Classic Bluetooth.
    case classic = 0
    /// Low Energy, with an address that its maker was assigned.
    case lowEnergyPublic = 1
    /// Low Energy, with an address of its own making.
    case lowEnergyRandom = 2
  }

  /// Whether it is reached by Low Energy.
  var isLowEnergy: Bool { kind != .classic }

  /// Its 48 bits.
  public let address: BluetoothAddress
  /// What they mean.
  public let kind: Kind

  init(address: BluetoothAddress, kind: Kind) {
    self.address = address
    self.kind = kind
  }

  init?(_ reader: inout ByteReader) {
    guard let address = reader.bytes(6), let kind = reader.littleEndian(UInt8.self).flatMap(Kind.init) else {
      return nil
    }
    self.init(address: BluetoothAddress(leastSignificantFirst: address), kind: kind)
  }

  var bytes: [UInt8] {
    address.leastSignificantFirst + [kind.rawValue]
  }
}

/// What a discovery hears of a device at one moment.
struct DeviceReport: Equatable {
  let device: RemoteDevice
  /// The strength of its signal in dBm; nil where it is not known.
  let signalStrength: Int8?
  /// Whether the kernel asks if the device's name is known, or it should find out.
  let wantsName: Bool
  let isConnectable: Bool
  let data: ArraySlice<UInt8>

  init?(_ reader: inout ByteReader) {
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
