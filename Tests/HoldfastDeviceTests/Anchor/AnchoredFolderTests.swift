import Foundation
import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

@Suite struct AnchoredFolderTests {
  private let tpm = FakeTPM()

  private func reset(_ device: TestDevice, seed: UInt64 = 2) throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: seed)
    return try DeviceFolder.reset(
      at: device.folder.path, operations: tpm.operations, random: &random, clock: device.clock)
  }

  private func open(_ device: TestDevice) throws(DeviceFolderFault) -> DeviceFolder {
    try DeviceFolder.open(at: device.folder.path, operations: tpm.operations)
  }

  @Test func `the description names the counter, whose index is of the owner's range and the device's own`() throws {
    let device = try TestDevice(tpm: tpm)
    let counter = try #require(device.folder.counter)
    #expect(try open(device).counter == counter)
    #expect((0x0180_0000...0x01bf_ffff).contains(counter.index))
    #expect(tpm.indices == [counter.index])
  }

  @Test(
    arguments: [
      #""tpm": "/fake""#, #""index": INDEX"#, #""tpm": "/fake", "index": INDEX, "more": 1"#,
      #""tpm": "/fake", "index": "INDEX""#, #""tpm": "/fake", "index": 25165824"#, #""tpm": "fake", "index": INDEX"#,
      #""tpm": "", "index": INDEX"#, #""tpm": 1, "index": INDEX"#, #""tpm": "/\u0000", "index": INDEX"#,
      #""tpm": "/LONG", "index": INDEX"#,
    ])
  func `a description whose counter is anything else is corrupt`(members: String) throws {
    let device = try TestDevice(tpm: tpm)
    let place = try #require(device.folder.counter)
    let path = DeviceFile.description.path(in: device.folder.path)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let good = try #require(text.range(of: #""counter": \{[^}]*\}"#, options: .regularExpression))
    let members = members.replacing("INDEX", with: "\(place.index)")
      .replacing("LONG", with: String(repeating: "x", count: 107))
    try #require(members != "")
    let spoiled = text.replacingCharacters(in: good, with: #""counter": {\#(members)}"#)
    try spoiled.write(toFile: path, atomically: false, encoding: .utf8)
    #expect(throws: DeviceFolderFault.file(.description, .corrupt)) { try open(device) }
  }

  @Test func `a description without the counter does not set the ledger free, nor one with it bind another`() throws {
    let anchored = try TestDevice(tpm: tpm)
    let path = DeviceFile.description.path(in: anchored.folder.path)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let free = text.replacing(/,\s*"counter": \{[^}]*\}/, with: "")
    try #require(free != text)
    try free.write(toFile: path, atomically: false, encoding: .utf8)
    let folder = try open(anchored)
    #expect(folder.counter == nil)
    #expect(throws: DeviceFolderFault.file(.description, .otherDevice)) { try folder.openLedger() }
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    try anchored.tamper("UPDATE state SET epoch = NULL, tpm = NULL")
    #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try open(anchored).openLedger() }
  }

  @Test func `an index that is in use is left alone, and the device gets another id`() throws {
    let first = try TestDevice(seed: 1)
    let index = try #require(CounterPlace(tpm: FakeTPM.path, deviceID: first.folder.descriptor.deviceID)).index
    tpm.put(at: index)
    let device = try TestDevice(seed: 1, tpm: tpm)
    #expect(device.folder.descriptor.deviceID != first.folder.descriptor.deviceID)
    #expect(tpm.indices == [index, try #require(device.folder.counter).index])
  }

  @Test(arguments: 1...3)
  func `a device that could not be made leaves no counter behind`(call: Int) throws {
    tpm.fail(FakeTPM.Failure(call: call, fault: .full))
    #expect(throws: DeviceFolderFault.counter(.full)) { try TestDevice(tpm: tpm) }
    #expect(tpm.indices.isEmpty)
  }

  @Test func `a reset device has a new counter, and no copy of the old one comes back`() throws {
    let device = try TestDevice(tpm: tpm)
    let old = try #require(device.folder.counter)
    try device.copyFolder(to: "old")
    let folder = try reset(device)
    let new = try #require(folder.counter)
    #expect(tpm.indices == [new.index])
    #expect(new != old)
    try device.copyFolder(to: "new")
    _ = try open(device).openLedger()
    try device.restoreFolder(from: "old")
    #expect(throws: DeviceFolderFault.counter(.notDefined)) { try open(device).openLedger() }
    // Nor with the old files under the new description, or the new ledger under the old one.
    for (file, other) in [("ledger.sqlite", "new"), ("device.json", "new"), ("device.key", "new")] {
      try device.restoreFolder(from: "old")
      try FileManager.default.removeItem(atPath: device.folder.path + "/" + file)
      try FileManager.default.copyItem(
        atPath: device.place.file(other) + "/" + file, toPath: device.folder.path + "/" + file)
      #expect(throws: DeviceFolderFault.self) { try open(device).openLedger() }
    }
    try device.restoreFolder(from: "new")
    _ = try open(device).openLedger()
  }

  @Test func `a ledger that was rolled back is reset to a new device`() throws {
    let device = try TestDevice(tpm: tpm)
    try device.copyFolder(to: "old")
    try device.ledger.record(.stopped, realClock: nil)
    try device.restoreFolder(from: "old")
    #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try device.reopenLedger() }
    let folder = try reset(device)
    _ = try folder.openLedger()
    #expect(tpm.indices == [try #require(folder.counter).index])
  }

  /// The calls of a reset are: define, increment, read, undefine.
  @Test(arguments: 1...4, [false, true])
  func `a reset whose counter fails keeps the old device or is done again`(call: Int, isDone: Bool) throws {
    let device = try TestDevice(tpm: tpm)
    try device.copyFolder(to: "old")
    tpm.fail(FakeTPM.Failure(call: call, isDone: isDone))
    #expect(throws: DeviceFolderFault.counter(.silent)) { try reset(device) }
    #expect(tpm.calls >= call)
    tpm.fail(nil)
    if call < 4 {
      _ = try open(device).openLedger()
    } else {
      #expect(throws: DeviceFolderFault.incomplete) { try open(device) }
    }
    let folder = try reset(device, seed: 3)
    _ = try open(device).openLedger()
    #expect(tpm.indices.contains(try #require(folder.counter).index))
    try device.restoreFolder(from: "old")
    #expect(throws: DeviceFolderFault.counter(.notDefined)) { try open(device).openLedger() }
  }

  @Test func `a lost description does not make an anchored device one without an anchor`() throws {
    let device = try TestDevice(tpm: tpm)
    try FileManager.default.removeItem(atPath: DeviceFile.description.path(in: device.folder.path))
    let folder = try reset(device)
    #expect(tpm.indices == [try #require(folder.counter).index])
    _ = try open(device).openLedger()
  }

  @Test func `the counter's authorization follows from the key, and from nothing else`() throws {
    let device = try TestDevice()
    let other = try TestDevice(seed: 2)
    func authorization(_ device: TestDevice) throws -> [UInt8] {
      let secret = try device.folder.secrets().counterAuthorization()
      return secret.withBytes { Array($0) }
    }
    #expect(try authorization(device) == authorization(device))
    #expect(try authorization(device) != authorization(other))
  }
}
