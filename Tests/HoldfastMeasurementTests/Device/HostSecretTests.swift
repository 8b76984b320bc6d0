import Foundation
import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct HostSecretTests {
  let host: HostFolder
  let manager = FileManager.default

  init() throws { host = try HostFolder() }

  @Test func `its component is SHA-256 of the 32 bytes`() throws {
    #expect(try host.digest("device.secret") == sha256([UInt8](repeating: 5, count: 32)))
  }

  @Test func `a missing secret is an error for a proof, and made by a baseline for this user alone`() throws {
    try host.remove("/home")
    #expect(throws: MeasurementError.deviceSecret(.missing)) { try host.measurement() }
    var measurer = Measurer(keys: .default, files: host.files)
    let made = try measurer.measure(makingDeviceSecret: true)
    #expect(try host.measurement().device == made.device)
    #expect(try mode(host.deviceSecretPath) == 0o600)
    #expect(try mode(host.root + "/home/holdfast") == 0o700)
    #expect(try manager.contentsOfDirectory(atPath: host.root + "/home/holdfast") == ["device.secret"])
  }

  @Test func `many threads that make it at once get the same`() async throws {
    try host.remove("/home")
    let files = host.files
    let digests = try await withThrowingTaskGroup(of: [Component].self) { group in
      for _ in 0..<16 {
        group.addTask {
          var measurer = Measurer(keys: .default, files: files)
          return try measurer.measure(makingDeviceSecret: true).device
        }
      }
      return try await group.reduce(into: Set<[Component]>()) { $0.insert($1) }
    }
    #expect(digests.count == 1)
    #expect(try manager.contentsOfDirectory(atPath: host.root + "/home/holdfast") == ["device.secret"])
  }

  @Test(arguments: [0o640, 0o604, 0o660, 0o644, 0o777, 0o700, 0o200, 0o000, 0o4600])
  func `any other mode is refused`(mode: Int) throws {
    try host.writeDeviceSecret(mode: mode)
    let isReadable = geteuid() == 0 || mode & 0o400 != 0
    let fault = MeasurementError.deviceSecret(isReadable ? .wrongMode : .system(EACCES))
    #expect(throws: fault) { try host.measurement() }
    var measurer = Measurer(keys: .default, files: host.files)
    #expect(throws: fault) { try measurer.measure(makingDeviceSecret: true) }
  }

  @Test func `a secret that is only readable will do`() throws {
    try host.writeDeviceSecret(mode: 0o400)
    #expect(throws: Never.self) { try host.measurement() }
  }

  @Test(arguments: [0, 31, 33, 4096])
  func `any other size is refused, and never replaced`(count: Int) throws {
    let bytes = [UInt8](repeating: 1, count: count)
    try host.writeDeviceSecret(bytes)
    var measurer = Measurer(keys: .default, files: host.files)
    #expect(throws: MeasurementError.deviceSecret(.wrongSize)) { try measurer.measure(makingDeviceSecret: true) }
    #expect(manager.contents(atPath: host.deviceSecretPath) == Data(bytes))
  }

  @Test func `a link is not followed`() throws {
    try manager.moveItem(atPath: host.deviceSecretPath, toPath: host.root + "/elsewhere")
    try manager.createSymbolicLink(atPath: host.deviceSecretPath, withDestinationPath: host.root + "/elsewhere")
    #expect(throws: MeasurementError.deviceSecret(.notPlainFile)) { try host.measurement() }
  }

  @Test func `a folder and a pipe are refused without waiting for a writer`() throws {
    try manager.removeItem(atPath: host.deviceSecretPath)
    #expect(unsafe mkfifo(host.deviceSecretPath, 0o600) == 0)
    #expect(throws: MeasurementError.deviceSecret(.notPlainFile)) { try host.measurement() }
    try manager.removeItem(atPath: host.deviceSecretPath)
    try manager.createDirectory(atPath: host.deviceSecretPath, withIntermediateDirectories: false)
    #expect(throws: MeasurementError.deviceSecret(.notPlainFile)) { try host.measurement() }
  }

  @Test(arguments: [0o755, 0o770, 0o701])
  func `a folder that lets others in is refused`(mode: Int) throws {
    try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: host.root + "/home/holdfast")
    #expect(throws: MeasurementError.deviceSecret(.folderNotPrivate)) { try host.measurement() }
  }

  @Test func `a folder that is a link is refused`() throws {
    try manager.moveItem(atPath: host.root + "/home/holdfast", toPath: host.root + "/home/other")
    try manager.createSymbolicLink(
      atPath: host.root + "/home/holdfast", withDestinationPath: host.root + "/home/other")
    #expect(throws: MeasurementError.deviceSecret(.folderNotPrivate)) { try host.measurement() }
  }

  @Test(.enabled(if: geteuid() == 0)) func `another user's secret is refused`() throws {
    #expect(unsafe chown(host.deviceSecretPath, 12345, 12345) == 0)
    #expect(throws: MeasurementError.deviceSecret(.wrongOwner)) { try host.measurement() }
  }

  private func mode(_ path: String) throws -> Int {
    try #require(manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  @Test func `a group of apps has a place of its own, and a process keeps the group that it chose`() throws {
    let shared = try HostSecret(HostFiles(), group: nil)
    let own = try HostSecret(HostFiles(), group: "com.example.locks")
    #expect(own.folder == shared.folder + "/groups/com.example.locks" && own.name == shared.name)
    #expect(HostSecretPlace.group == nil)
    var choice = HostSecretChoice()
    for name in ["", ".", "..", "-a", "a/b", "a\0b", "\u{e9}", "a b", String(repeating: "a", count: 65)] {
      let isChosen = choice.choose(name)
      #expect(!isChosen, "\(name)")
    }
    #expect(choice.group == nil)
    let longest = String(repeating: "a", count: 64)
    let answers = [choice.choose(longest), choice.choose(longest), choice.choose("b")]
    #expect(answers == [true, true, false] && choice.group == longest)
  }
}
