import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

@Suite struct PolicyFileTests {
  private func replace(_ device: TestDevice, _ text: String) throws {
    let path = DeviceFile.policy.path(in: device.folder.path)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  @Test func `each change is seen at the next look, even of the same length in the same moment`() throws {
    let device = try TestDevice()
    let file = try device.folder.policy(of: device.ledger)
    #expect(file.read().policy == .forSimulatedLock)
    for name in ["a", "b", "c", "d"] {
      try replace(device, #"{"version": 1, "commands": {"\#(name)": {"factors": []}}}"#)
      #expect(file.read().policy.commands.keys.map { $0.description } == [name])
    }
  }

  @Test func `a policy is named by SHA-256 of its file`() {
    let reading = PolicyReading(Array(#"{"version": 1, "commands": {}}"#.utf8))
    let digest = "d691ae875051e4823bce14f894ffe248dbed66b3fd260ef2d96a42cb0bdad0c4"
    #expect(reading.digest.map { hex($0.bytes) } == digest && reading.fault == nil)
  }

  @Test func `a file that cannot be taken allows nothing, and one that is good again allows again`() throws {
    let device = try TestDevice()
    let file = try device.folder.policy(of: device.ledger)
    let path = DeviceFile.policy.path(in: device.folder.path)
    try replace(device, "nonsense")
    #expect(file.read() == PolicyReading(fault: .malformed(JSONMistake(at: [], expected: .syntax, line: 1))))
    #expect(file.read().policy == .denyAll)
    try FileManager.default.removeItem(atPath: path)
    #expect(file.read() == PolicyReading(fault: .unreadable))
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/null")
    #expect(file.read() == PolicyReading(fault: .unreadable))
    try FileManager.default.removeItem(atPath: path)
    try replace(device, String(repeating: " ", count: 256 * 1024 + 1))
    #expect(
      file.read() == PolicyReading(fault: .malformed(JSONMistake(at: [], expected: .shorterText(256 * 1024)))))
    try device.folder.write(.forSimulatedLock)
    #expect(file.read().policy == .forSimulatedLock)
  }

  @Test func `a good policy behind a symbolic link allows nothing`() throws {
    let device = try TestDevice()
    let path = DeviceFile.policy.path(in: device.folder.path)
    try FileManager.default.moveItem(atPath: path, toPath: path + ".elsewhere")
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".elsewhere")
    #expect(try device.folder.policy(of: device.ledger).read() == PolicyReading(fault: .unreadable))
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func `a policy or a folder of another user is refused`() throws {
    let device = try TestDevice()
    #expect(unsafe chown(DeviceFile.policy.path(in: device.folder.path), 12345, 12345) == 0)
    #expect(try device.folder.policy(of: device.ledger).read() == PolicyReading(fault: .unreadable))
    #expect(unsafe chown(device.folder.path, 12345, 12345) == 0)
    #expect(throws: DeviceFolderFault.folder(FileError(.wrongOwner, at: device.folder.path))) {
      try DeviceFolder.open(at: device.folder.path)
    }
  }

  @Test func `a change is announced and audited once, and not again after a restart`() throws {
    let device = try TestDevice()
    let notices = Mutex<[ServerNotice]>([])
    func watch() throws -> PolicyWatch {
      PolicyWatch(try device.folder.policy(of: device.ledger), ledger: device.ledger) { notice in
        notices.withLock { $0.append(notice) }
      }
    }
    let first = try watch()
    for _ in 0..<3 { #expect(first.policy(realClock: nil) == .forSimulatedLock) }
    try replace(device, "nonsense")
    for _ in 0..<3 { #expect(first.policy(realClock: nil) == .denyAll) }
    #expect(notices.withLock { $0.count } == 2)
    _ = try watch().policy(realClock: nil)
    #expect(notices.withLock { $0.count } == 3)
    let seen = try device.ledger.auditEntries(after: 2, limit: 10).map(\.event)
    #expect(seen.count == 2)
    #expect(seen.last == .policySeen(nil))
  }

  @Test func `without a policy every command is refused, and nothing else changes`() throws {
    let device = try TestDevice(policy: .denyAll)
    let prover = try device.prover()
    let connection = try device.connect()
    for command in ["unlock", "lock", "status"] {
      #expect(try connection.round(prover, command).status == .commandRefused)
    }
    #expect(try connection.round(prover, flaws: .wrongIntegrity).status == .integrityMismatch)
  }
}
