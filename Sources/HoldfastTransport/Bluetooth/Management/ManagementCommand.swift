/// A command to the kernel's Bluetooth management interface.
///
/// Source: BlueZ, mgmt(7): u16 code, u16 adapter, u16 number of bytes that follow, all little-endian.
struct ManagementCommand {
  enum Code: UInt16 {
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

  /// The place of an adapter's number in what concerns none.
  static let noAdapter: UInt16 = 0xffff

  let code: Code
  let adapter: UInt16
  let parameters: [UInt8]

  init(_ code: Code, adapter: UInt16, _ parameters: [UInt8] = []) {
    self.code = code
    self.adapter = adapter
    self.parameters = parameters
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: code.rawValue)
    bytes.append(littleEndian: adapter)
    bytes.append(littleEndian: UInt16(parameters.count))
    return bytes + parameters
  }
}
