import Foundation
import HoldfastCore
import HoldfastDevice
import Testing

@Suite struct SimulatedLockTests {
  @Test func `it goes where it is told and says where it stands, also after a restart`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.round(prover, "status").result == "locked")
    #expect(try connection.round(prover, "unlock").result == "unlocked")
    #expect(try connection.round(prover, "unlock").result == "unlocked")
    #expect(try connection.round(prover, "status").result == "unlocked")
    #expect(try device.folder.openLock().current == .unlocked)
    #expect(try connection.round(prover, "lock").result == "locked")
    #expect(try device.folder.openLock().current == .locked)
  }

  @Test func `a lock that cannot keep its state does not move`() throws {
    let device = try TestDevice()
    let path = DeviceFile.actuator.path(in: device.folder.path)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(try device.connect().round(try device.prover()).status == .internal)
    #expect(device.lock.current == .locked)
  }
}
