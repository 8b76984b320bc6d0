import Foundation
import HoldfastCore
import HoldfastDevice
import TestSupport
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

  private static let own = String(repeating: "01", count: 16)
  private static let other = String(repeating: "02", count: 16)

  @Test(
    arguments: [
      ("locked \(own)\n", nil), ("locked \(other)\n", .otherDevice), ("unlocked \(other)\n", .otherDevice),
      ("locked \(other)", .corrupt), ("locked \(other)x", .corrupt), ("locked \(own)", .corrupt),
      ("open \(other)\n", .corrupt), ("locked  \(other)\n", .corrupt), ("locked \(other) \n", .corrupt),
      ("locked \(other.dropLast())\n", .corrupt), ("locked\n", .corrupt), ("", .corrupt),
    ] as [(String, DeviceFileFault?)])
  func `its file names one of two places and the device, on one line`(text: String, fault: DeviceFileFault?) throws {
    let place = try TemporaryFolder()
    let path = try place.makeFile("state", Array(text.utf8))
    let file = LockStateFile(path: path, deviceID: fixed(hex(Self.own)))
    guard let fault else { return #expect(try file.read() == .locked) }
    #expect(throws: fault) { try file.read() }
  }
}
