import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct MachineIdentityTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `machine id and serial number each count`() throws {
    let idAlone = try host.digest("device.machine")
    try host.write("/proc/device-tree/serial-number", "10000000abcdef\0")
    let both = try host.digest("device.machine")
    try host.remove("/etc/machine-id")
    let serialAlone = try host.digest("device.machine")
    #expect(Set([idAlone, both, serialAlone]).count == 3)
    #expect(try !host.measurement().restsOnDeviceSecretAlone)
  }

  @Test func `it is an array of both, with null for what is absent`() throws {
    let id = Array("0123456789abcdef0123456789abcdef".utf8)
    #expect(try MachineIdentity(host.files).encoded == [0x82, 0x58, 32] + id + [0xf6])
    try host.remove("/etc/machine-id")
    try host.write("/proc/device-tree/serial-number", "12\0")
    #expect(try MachineIdentity(host.files).encoded == [0x82, 0xf6, 0x43, 0x31, 0x32, 0])
  }

  @Test func `the line's end does not count`() throws {
    let before = try host.digest("device.machine")
    try host.write("/etc/machine-id", "0123456789abcdef0123456789abcdef")
    #expect(try host.digest("device.machine") == before)
  }

  @Test(arguments: ["", "\n", "uninitialized\n"])
  func `an id that was not set is absent, and the device rests on its secret alone`(id: String) throws {
    try host.write("/etc/machine-id", id)
    #expect(try host.digest("device.machine") == absence())
    #expect(try host.measurement().restsOnDeviceSecretAlone)
  }

  @Test func `a folder in place of the id is an error, not absence`() throws {
    try host.remove("/etc/machine-id")
    try host.write("/etc/machine-id/file", "")
    #expect(throws: MeasurementError.unreadable(.machineID, code: 21)) { try host.measurement() }
  }
}
