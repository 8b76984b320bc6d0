import HoldfastLinux
import Testing

import HoldfastTransport

struct ManagementEventTests {
  private static let address: [UInt8] = [0x13, 0x71, 0xda, 0x7d, 0x1a, 0x00]

  private static func event(_ code: UInt16, _ parameters: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: code)
    bytes.append(littleEndian: UInt16(1))
    bytes.append(littleEndian: UInt16(parameters.count))
    return bytes + parameters
  }

  @Test func `a command has code, adapter and length before its parameters, all little-endian`() {
    let command = ManagementCommand(.addAdvertising, adapter: 0x0102, [7, 8, 9])
    #expect(command.bytes == [0x3e, 0x00, 0x02, 0x01, 0x03, 0x00, 7, 8, 9])
  }

  @Test func `a found device has address, signal and data`() throws {
    let bytes = Self.event(0x0012, Self.address + [2, 0xc4, 0x01, 0, 0, 0, 3, 0, 2, 0x09, 0x41])
    let (adapter, event) = try #require(ManagementEvent.read(bytes[...]))
    guard case .deviceFound(let report) = event else { return #expect(Bool(false), "it is \(event)") }
    #expect(adapter == 1)
    #expect(report.device.address.description == "00:1A:7D:DA:71:13" && report.device.kind == .lowEnergyRandom)
    #expect(report.signalStrength == -60 && report.wantsName && report.isConnectable)
    #expect(FoundPeer(report).name == "A")
  }

  @Test func `a signal of 127 is not known, and a flag says that nobody can connect`() throws {
    let bytes = Self.event(0x0012, Self.address + [0, 127, 0x04, 0, 0, 0, 0, 0])
    let (_, event) = try #require(ManagementEvent.read(bytes[...]))
    guard case .deviceFound(let report) = event else { return #expect(Bool(false), "it is \(event)") }
    #expect(report.signalStrength == nil && !report.wantsName && !report.isConnectable)
  }

  @Test func `a link begins and ends, with the host that began it`() throws {
    let device = RemoteDevice(
      address: try BluetoothAddress(parsing: "00:1A:7D:DA:71:13"), kind: .lowEnergyPublic)
    for (flags, isOurs) in [(UInt8(0), false), (8, true), (2, false)] {
      let begun = Self.event(0x000b, Self.address + [1, flags, 0, 0, 0, 2, 0, 7, 7])
      #expect(ManagementEvent.read(begun[...])?.event == .linkBegun(device, isOurs: isOurs))
    }
    let ended = Self.event(0x000c, Self.address + [1, 3])
    #expect(ManagementEvent.read(ended[...])?.event == .linkEnded(device))
    let key = [UInt8](repeating: 9, count: 16)
    let identified = Self.event(0x0018, [1, 1, 0, 0, 0, 0, 0x7a] + Self.address + [1] + key)
    #expect(
      ManagementEvent.read(identified[...])?.event
        == .identified(try BluetoothAddress(parsing: "7A:00:00:00:00:01"), as: device))
    #expect(ManagementEvent.read(Self.event(0x0024, [3])[...])?.event == .advertisingRemoved(instance: 3))
    #expect(ManagementEvent.read(Self.event(0x0006, [1, 2, 0, 0])[...])?.event == .settings([.powered, .lowEnergy]))
  }

  @Test(arguments: [(UInt8(0), false), (1, true), (2, false)])
  func `only a hint of one is just works`(hint: UInt8, isJustWorks: Bool) throws {
    let bytes = Self.event(0x000f, Self.address + [1, hint, 1, 2, 3, 4])
    let (_, event) = try #require(ManagementEvent.read(bytes[...]))
    let device = RemoteDevice(
      address: try BluetoothAddress(parsing: "00:1A:7D:DA:71:13"), kind: .lowEnergyPublic)
    #expect(event == .confirmationRequest(device, isJustWorks: isJustWorks))
    #expect(device.bytes == Self.address + [1])
  }

  @Test(
    arguments: [
      [], [1, 0], [0x12, 0, 0, 0, 1, 0], [0x12, 0, 0, 0, 0, 0, 1], event(0x0001, [1, 0]), event(0x0012, address),
      event(0x0012, address + [3, 0, 0, 0, 0, 0, 0, 0]), event(0x0012, address + [0, 0, 0, 0, 0, 0, 1, 0]),
      event(0x0012, address + [0, 0, 0, 0, 0, 0, 0, 0, 1]), event(0x000f, address + [0, 1, 0, 0, 0]),
      event(0x000f, address + [9, 1, 0, 0, 0, 0]), event(0x0013, [7]), event(0x0013, [7, 1, 1]),
      event(0x0006, [1, 2, 0]), event(0x000b, address + [1, 0, 0, 0, 0, 1, 0]), event(0x000c, address + [1]),
      event(0x000c, address + [1, 3, 3]), event(0x0018, [1] + address + address + [1]), event(0x0024, []),
    ] as [[UInt8]])
  func `an event whose lengths do not fit is none`(bytes: [UInt8]) {
    #expect(ManagementEvent.read(bytes[...]) == nil)
  }

  @Test func `an adapter's information is read, in its 280 bytes and no others`() throws {
    var bytes = Self.address + [0x0a, 0x5d, 0x00]
    bytes.append(littleEndian: UInt32(0xffff))
    bytes.append(littleEndian: AdapterSettings([.powered, .lowEnergy]).rawValue)
    bytes += [0, 0, 0] + Array("gate".utf8)
    bytes += [UInt8](repeating: 0, count: 280 - bytes.count)
    let adapter = try #require(Adapter(number: 3, bytes[...], block: .soft))
    #expect(adapter.number == 3 && adapter.address.description == "00:1A:7D:DA:71:13" && adapter.name == "gate")
    #expect(adapter.settings == [.powered, .lowEnergy] && adapter.supported.contains(.bondable))
    #expect(adapter.block == .soft)
    #expect(Adapter(number: 3, bytes.dropLast(), block: nil) == nil)
    #expect(Adapter(number: 3, bytes[...] + [0], block: nil) == nil)
  }

  @Test func `a later report adds to what is known of a device`() throws {
    func report(_ data: [UInt8], strength: UInt8) throws -> DeviceReport {
      let bytes = Self.event(0x0012, Self.address + [1, strength, 0, 0, 0, 0, UInt8(data.count), 0] + data)
      guard case (_, .deviceFound(let report))? = ManagementEvent.read(bytes[...]) else {
        throw BluetoothError.malformed
      }
      return report
    }
    var device = FoundPeer(try report(AdvertisingData.advertisement, strength: 0xc4))
    #expect(device.namesService && device.psms.isEmpty)
    device.merge(try report(AdvertisingData.scanResponse(psm: 0x85, name: "gate"), strength: 127))
    #expect(device.psms == [0x85] && device.name == "gate" && device.signalStrength == -60)
    // What is malformed changes nothing.
    device.merge(try report([9, 9], strength: 0xc5))
    #expect(device.psms == [0x85] && device.signalStrength == -59)
    device.merge(try report(AdvertisingData.scanResponse(psm: 0x81, name: ""), strength: 127))
    #expect(
      try device.endpoints(adapter: 2, by: Deadline(afterMilliseconds: 0)).map(\.description)
        == ["le:00:1A:7D:DA:71:13,psm=0x85,hci=hci2", "le:00:1A:7D:DA:71:13,psm=0x81,hci=hci2"])
  }
}
