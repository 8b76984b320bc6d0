import Foundation
import TestSupport
import Testing

import HoldfastTransport

/// The operations over the management interface, against a stand-in of the kernel.
struct ManagementSocketTests {
  private static let address: [UInt8] = [1, 2, 3, 4, 5, 6]

  private static func adapter(_ settings: AdapterSettings) -> Adapter {
    Adapter(number: 1, address: .any, name: "", supported: settings, settings: settings, block: nil)
  }

  private static func found(_ last: UInt8, kind: UInt8 = 1, flags: UInt8 = 0) -> [UInt8] {
    [last, 0, 0, 0, 0, 0, kind, 0xc4, flags, 0, 0, 0, 0, 0]
  }

  @Test func `an answer to another command, or of another adapter, is not taken for one`() throws {
    let kernel = try ManagementStandIn()
    kernel.send(0x0001, adapter: 1, [0x05, 0x00, 0x00, 9])
    kernel.send(0x0001, adapter: 2, [0x04, 0x00, 0x00, 9])
    kernel.send(0x0001, adapter: 1, [0x04, 0x00, 0x00, 7])
    let result = try kernel.management.execute(ManagementCommand(.readInformation, adapter: 1))
    #expect(Array(result) == [7])
  }

  @Test(
    arguments: [
      (0x01, .adapterUnable), (0x08, .timedOut), (0x0a, .busy), (0x0f, .adapterDown), (0x11, .noAdapter),
      (0x12, .adapterBlocked), (0x14, .permissionDenied), (0x03, .refused(status: 3)),
    ] as [(UInt8, BluetoothError)])
  func `a status is an error by name`(status: UInt8, error: BluetoothError) throws {
    let kernel = try ManagementStandIn()
    kernel.send(0x0002, adapter: 1, [0x23, 0x00, status])
    #expect(throws: error) { try kernel.management.execute(ManagementCommand(.startDiscovery, adapter: 1)) }
  }

  @Test func `a kernel that does not answer holds nobody longer than the deadline`() throws {
    let kernel = try ManagementStandIn()
    #expect(throws: BluetoothError.timedOut) {
      try kernel.management.execute(ManagementCommand(.startDiscovery, adapter: 1), timeoutMilliseconds: 1)
    }
  }

  /// The result of Read Controller Information, without address, settings and name.
  private static let information = [UInt8](repeating: 0, count: 280)

  @Test func `adapters are listed by number, each with the block of its radio`() throws {
    let kernel = try ManagementStandIn()
    let radios = try TemporaryFolder()
    for (adapter, hard, soft) in [(0, "0", "0"), (1, "0", "1"), (2, "1", "1")] {
      let folder = "hci\(adapter)/rfkill\(adapter)"
      try FileManager.default.createDirectory(atPath: radios.file(folder), withIntermediateDirectories: true)
      try radios.makeFile("\(folder)/hard", Array("\(hard)\n".utf8))
      try radios.makeFile("\(folder)/soft", Array("\(soft)\n".utf8))
    }
    kernel.send(0x0001, adapter: 0xffff, [0x03, 0x00, 0x00, 5, 0, 3, 0, 2, 0, 1, 0, 0, 0, 4, 0])
    for adapter: UInt16 in 0..<5 {
      // The last but one was unplugged.
      let answer: [UInt8] = adapter == 3 ? [0x04, 0x00, 0x11] : [0x04, 0x00, 0x00] + Self.information
      kernel.send(adapter == 3 ? 0x0002 : 0x0001, adapter: adapter, answer)
    }
    let adapters = try Adapter.all(kernel.management, radios: radios.path)
    #expect(adapters.map(\.number) == [0, 1, 2, 4])
    #expect(adapters.map(\.block) == [nil, .soft, .hard, nil])
  }

  @Test(arguments: [[5], [2, 0, 1, 0], [1, 0, 0, 0, 0, 0]] as [[UInt8]])
  func `a list of adapters whose length does not fit is malformed`(list: [UInt8]) throws {
    let kernel = try ManagementStandIn()
    kernel.send(0x0001, adapter: 0xffff, [0x03, 0x00, 0x00] + list)
    #expect(throws: BluetoothError.malformed) { try Adapter.all(kernel.management, radios: "/nowhere") }
  }

  @Test func `a search asks for names, begins anew when the kernel ends it, and is stopped`() throws {
    let kernel = try ManagementStandIn()
    let scan = try DeviceScan(Self.adapter([.powered, .classic, .lowEnergy]), management: kernel.management)
    let devices = try Worker { try scan.run(milliseconds: generousMilliseconds) { _ in } }
    #expect(try kernel.answer(.startDiscovery).parameters == [7])
    kernel.send(0x0012, adapter: 1, Self.found(1, kind: 0, flags: 1))
    #expect(try kernel.next() == .init(code: 0x25, adapter: 1, parameters: [1, 0, 0, 0, 0, 0, 0, 0]))
    kernel.send(0x0012, adapter: 1, Self.found(2))
    kernel.send(0x0012, adapter: 1, Self.found(1, kind: 0))
    kernel.send(0x0012, adapter: 9, Self.found(3))
    kernel.send(0x0013, adapter: 1, [7, 0])
    try kernel.answer(.startDiscovery)
    scan.cancel()
    #expect(try kernel.answer(.stopDiscovery).parameters == [7])
    #expect(try devices.value().map(\.device.address.value) == [1, 2])
  }

  @Test func `a search is stopped after a fault too`() throws {
    let kernel = try ManagementStandIn()
    let scan = try DeviceScan(Self.adapter([.powered, .lowEnergy]), management: kernel.management)
    let devices = try Worker { try scan.run(milliseconds: generousMilliseconds) { _ in } }
    #expect(try kernel.answer(.startDiscovery).parameters == [6])
    kernel.send(0x0013, adapter: 1, [6, 0])
    try kernel.answer(.startDiscovery, status: 0x0f)
    try kernel.answer(.stopDiscovery)
    #expect(throws: BluetoothError.adapterDown) { try devices.value() }
  }

  @Test func `a flood of addresses ends at the limit`() throws {
    let kernel = try ManagementStandIn()
    let scan = try DeviceScan(Self.adapter([.powered, .lowEnergy]), management: kernel.management)
    let devices = try Worker { try scan.run(milliseconds: generousMilliseconds) { _ in } }
    try kernel.answer(.startDiscovery)
    for number in 0..<(DeviceScan.maximumDeviceCount + 10) {
      var parameters = Self.found(UInt8(truncatingIfNeeded: number))
      parameters[1] = UInt8(number >> 8)
      kernel.send(0x0012, adapter: 1, parameters)
    }
    // Answered after all of the reports were taken.
    kernel.send(0x0013, adapter: 1, [6, 0])
    try kernel.answer(.startDiscovery)
    scan.cancel()
    try kernel.answer(.stopDiscovery)
    #expect(try devices.value().count == DeviceScan.maximumDeviceCount)
  }

  @Test func `an adapter that is off searches for nothing`() {
    #expect(throws: BluetoothError.adapterDown) { try DeviceScan(Self.adapter([.lowEnergy])) }
    let blocked = Adapter(number: 1, address: .any, name: "", supported: [], settings: [], block: .soft)
    #expect(throws: BluetoothError.adapterBlocked) { try DeviceScan(blocked) }
  }

  @Test func `pairing without a number is accepted, and no other`() throws {
    let kernel = try ManagementStandIn()
    let acceptor = try PairingAcceptor(adapter: 1, peer: nil, management: kernel.management)
    kernel.send(0x000f, adapter: 1, Self.address + [0, 0, 1, 2, 3, 4])
    kernel.send(0x000f, adapter: 2, Self.address + [0, 1, 1, 2, 3, 4])
    kernel.send(0x000f, adapter: 1, Self.address + [2, 1, 1, 2, 3, 4])
    // The first that is answered is the last that was asked.
    #expect(try kernel.next() == .init(code: 0x1c, adapter: 1, parameters: Self.address + [2]))
    withExtendedLifetime(acceptor) {}
  }

  @Test func `pairing is accepted on every adapter where none is named`() throws {
    let kernel = try ManagementStandIn()
    let acceptor = try PairingAcceptor(adapter: nil, peer: nil, management: kernel.management)
    for adapter: UInt16 in [3, 0] {
      kernel.send(0x000f, adapter: adapter, Self.address + [1, 1, 1, 2, 3, 4])
      #expect(try kernel.next() == .init(code: 0x1c, adapter: adapter, parameters: Self.address + [1]))
    }
    withExtendedLifetime(acceptor) {}
  }

  @Test func `pairing is accepted from the one that may`() throws {
    let kernel = try ManagementStandIn()
    let peer = try BluetoothAddress(parsing: "06:05:04:03:02:01")
    let acceptor = try PairingAcceptor(adapter: 1, peer: peer, management: kernel.management)
    kernel.send(0x000f, adapter: 1, [9, 2, 3, 4, 5, 6, 1, 1, 1, 2, 3, 4])
    kernel.send(0x000f, adapter: 1, Self.address + [1, 1, 1, 2, 3, 4])
    #expect(try kernel.next() == .init(code: 0x1c, adapter: 1, parameters: Self.address + [1]))
    withExtendedLifetime(acceptor) {}
  }

  @Test func `two devices on one adapter do not take the same instance, which the kernel may not list`() throws {
    let kernel = try ManagementStandIn()
    let features: [UInt8] = [0, 0, 0, 0, 31, 31, 2, 0]
    func claim() throws -> AdvertisingInstance {
      let worker = try Worker { try AdvertisingInstance(of: adapterOfTests(10), kernel.management) }
      try kernel.answer(.readAdvertisingFeatures, features)
      return try worker.value()
    }
    let first = try claim()
    do {
      let second = try claim()
      #expect(first.number == 2 && second.number == 1)
      #expect(throws: BluetoothError.noInstance) { try claim() }
    }
    #expect(try claim().number == 1)
  }

  @Test(
    arguments: [
      ([0, 0, 0, 0, 31, 31, 0, 0], .adapterUnable), ([0, 0, 0, 0, 31, 31, 1, 1, 1], .noInstance),
      ([0, 0, 0, 0, 31, 31, 1, 2, 1], .malformed), ([0, 0, 0, 0, 31, 31, 1], .malformed),
    ] as [([UInt8], BluetoothError)])
  func `an adapter without a free instance says so`(features: [UInt8], error: BluetoothError) throws {
    let kernel = try ManagementStandIn()
    let worker = try Worker { try AdvertisingInstance(of: adapterOfTests(11), kernel.management) }
    try kernel.answer(.readAdvertisingFeatures, features)
    #expect(throws: error) { try worker.value() }
  }
}
