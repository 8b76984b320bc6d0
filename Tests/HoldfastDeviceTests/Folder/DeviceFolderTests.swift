import Foundation
import HoldfastCore
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastTransport
import TestSupport
import Testing

import HoldfastDevice

/// The files of a new device, in the order in which they are listed.
private let madeFiles = DeviceFile.allCases.filter { $0 != .signedPolicy }

@Suite struct DeviceFolderTests {
  private let place: TemporaryFolder

  init() throws {
    place = try TemporaryFolder()
  }

  private var path: String { place.path + "/device" }

  @discardableResult
  private func create(seed: UInt64 = 1) throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: seed)
    return try DeviceFolder.create(at: path, random: &random, clock: TestClock())
  }

  private func file(_ file: DeviceFile) -> String { file.path(in: path) }

  private func setMode(_ mode: Int, _ path: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }

  private func write(_ text: String, to file: DeviceFile) throws {
    try FileManager.default.removeItem(atPath: self.file(file))
    #expect(
      FileManager.default.createFile(
        atPath: self.file(file), contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
  }

  private func expect(_ fault: DeviceFolderFault, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(throws: fault, sourceLocation: sourceLocation) { try DeviceFolder.open(at: path) }
  }

  @Test func `a new device opens with what was made, and its files are its owner's alone`() throws {
    let made = try create()
    let opened = try DeviceFolder.open(at: path)
    #expect(opened.descriptor == made.descriptor)
    #expect(try opened.openLock().current == .locked)
    #expect(try opened.openLedger().summary().clockFloor == testTime)
    #expect(try opened.policyFile().read().policy == .forSimulatedLock)
    let manager = FileManager.default
    #expect(try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
    for name in try manager.contentsOfDirectory(atPath: path) {
      #expect(try manager.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int == 0o600)
    }
  }

  @Test func `two devices have nothing in common`() throws {
    let first = try create(seed: 1)
    try FileManager.default.removeItem(atPath: path)
    let second = try create(seed: 2)
    #expect(first.descriptor.deviceID != second.descriptor.deviceID)
    #expect(first.descriptor.keyID != second.descriptor.keyID)
  }

  @Test func `a device is never made over another one`() throws {
    let before = try create().descriptor
    #expect(throws: DeviceFolderFault.alreadyMade) { try create(seed: 2) }
    #expect(try DeviceFolder.open(at: path).descriptor == before)
  }

  @Test func `a folder in which somebody is at work is not taken`() throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let held = try DirectoryLock(directory: path)
    #expect(throws: DeviceFolderFault.folder(FileError(.locked, at: path))) { try create() }
    _ = consume held
    try create()
  }

  @Test func `an empty private folder is taken, an open one is not`() throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    #expect(throws: DeviceFolderFault.folder(FileError(.tooOpen(mode: 0o755), at: path))) { try create() }
    try setMode(0o700, path)
    try create()
  }

  @Test func `a symbolic link or a file is no folder`() throws {
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: place.path)
    expect(.folder(FileError(.symbolicLink, at: path)))
    #expect(throws: DeviceFolderFault.folder(FileError(.symbolicLink, at: path))) { try create() }
    try FileManager.default.removeItem(atPath: path)
    try place.makeFile("device")
    expect(.folder(FileError(.notDirectory, at: path)))
    #expect(throws: DeviceFolderFault.folder(FileError(.notDirectory, at: path))) { try create() }
  }

  @Test func `a folder that is not there, or holds no device, is missing`() throws {
    func notFound(_ path: String) -> DeviceFolderFault { .folder(FileError(.notFound, at: path)) }
    expect(notFound(path))
    #expect(throws: notFound(place.path + "\0")) { try DeviceFolder.open(at: place.path + "\0") }
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    expect(.missing)
    #expect(throws: notFound(place.path + "/none/device")) {
      var random = TestRandom(state: 1)
      _ = try DeviceFolder.create(at: place.path + "/none/device", random: &random, clock: TestClock())
    }
  }

  @Test(arguments: madeFiles.filter { $0 != .description })
  func `a folder whose making was interrupted is half-made, wherever that was`(last: DeviceFile) throws {
    try create()
    for other in madeFiles where other != last {
      try FileManager.default.removeItem(atPath: file(other))
    }
    expect(.incomplete)
    #expect(throws: DeviceFolderFault.incomplete) { try create() }
  }

  @Test(arguments: 0...madeFiles.count)
  func `a device whose making was interrupted is refused, and the next making begins anew`(fileCount: Int) throws {
    try create()
    let first = try DeviceFolder.open(at: path).descriptor
    for other in madeFiles.dropFirst(fileCount) { try FileManager.default.removeItem(atPath: file(other)) }
    try IncompleteFolder.mark(path, as: .device)
    expect(.halfMade)
    var random = TestRandom(state: 9)
    #expect(throws: DeviceFolderFault.halfMade) {
      _ = try DeviceFolder.reset(at: path, random: &random, clock: TestClock())
    }
    try create(seed: 2)
    #expect(try DeviceFolder.open(at: path).descriptor != first)
  }

  @Test(arguments: [(FolderKind.service, "issuer.key"), (.prover, "devices"), (.authenticator, "authenticator.sqlite")])
  func `a folder of another kind is refused by its kind, and nothing is written into it`(
    kind: FolderKind, name: String
  ) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try Files.writeFileAtomically([], at: path + "/" + name, overwrite: false)
    let fault = DeviceFolderFault.folder(FileError(.anotherKind(kind), at: path))
    expect(fault)
    #expect(throws: fault) { try create() }
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [name])
  }

  @Test func `a folder that others may enter is refused`() throws {
    try create()
    try setMode(0o750, path)
    expect(.folder(FileError(.tooOpen(mode: 0o750), at: path)))
  }

  @Test(arguments: [DeviceFile.key, .description])
  func `a file that others may read, or that is a link or missing, is named`(which: DeviceFile) throws {
    try create()
    try setMode(0o640, file(which))
    func fault(_ kind: FileError.Kind) -> DeviceFolderFault { .file(which, .file(FileError(kind, at: file(which)))) }
    expect(fault(.tooOpen(mode: 0o640)))
    try setMode(0o600, file(which))
    _ = try DeviceFolder.open(at: path)
    try FileManager.default.moveItem(atPath: file(which), toPath: place.path + "/elsewhere")
    expect(which == .description ? .incomplete : fault(.notFound))
    try FileManager.default.createSymbolicLink(
      atPath: file(which), withDestinationPath: place.path + "/elsewhere")
    expect(fault(.symbolicLink))
  }

  @Test func `a key file that was changed or cut is corrupt`() throws {
    try create()
    let text = try String(contentsOfFile: file(.key), encoding: .utf8)
    for changed in [
      String(text.dropLast(3)), "", text + "x", text.replacing("P-256", with: "P-384"),
      text.replacing("EC", with: "OKP"),
    ] {
      try write(changed, to: .key)
      expect(.file(.key, .corrupt))
    }
  }

  @Test func `key, ledger and lock of another device are named as such`() throws {
    try create(seed: 1)
    let manager = FileManager.default
    try manager.moveItem(atPath: path, toPath: place.path + "/other")
    let folder = try create(seed: 2)
    for which in [DeviceFile.key, .ledger, .actuator] {
      let own = file(which) + ".own"
      try manager.moveItem(atPath: file(which), toPath: own)
      try manager.copyItem(atPath: which.path(in: place.path + "/other"), toPath: file(which))
      #expect(throws: DeviceFolderFault.file(which, .otherDevice)) {
        let opened = try DeviceFolder.open(at: path)
        _ = try opened.openLedger()
        _ = try opened.openLock()
      }
      try manager.removeItem(atPath: file(which))
      try manager.moveItem(atPath: own, toPath: file(which))
    }
    #expect(try DeviceFolder.open(at: path).descriptor == folder.descriptor)
    _ = try folder.openLedger()
    _ = try folder.openLock()
  }

  @Test func `a description of another version, or none at all, is told apart`() throws {
    try create()
    let text = try String(contentsOfFile: file(.description), encoding: .utf8)
    try write(text.replacing(#""version": 2"#, with: #""version": 3"#), to: .description)
    expect(.file(.description, .newerVersion))
    try write(text.replacing(#""version": 2"#, with: #""version": 1"#), to: .description)
    expect(.file(.description, .olderVersion))
    try write("{}", to: .description)
    expect(.file(.description, .corrupt))
    try write(text.replacing(#""kid": ""#, with: #""kid": "0"#), to: .description)
    expect(.file(.description, .corrupt))
  }

  @Test func `a ledger that is missing, empty, foreign or of a later version is named`() throws {
    let folder = try create()
    func expect(_ fault: DeviceFileFault) {
      #expect(throws: DeviceFolderFault.file(.ledger, fault)) { try folder.openLedger() }
    }
    try write("not a database, by its first bytes", to: .ledger)
    expect(.database(.corrupt))
    try write("", to: .ledger)
    expect(.database(.corrupt))
    try FileManager.default.removeItem(atPath: file(.ledger))
    expect(.database(.cannotOpen))
    let device = try TestDevice()
    try device.tamper("PRAGMA user_version = 1000")
    #expect(throws: DeviceFolderFault.file(.ledger, .database(.newerVersion(found: 1000)))) {
      try device.folder.openLedger()
    }
  }

  @Test func `a lock that stands nowhere is corrupt`() throws {
    let folder = try create()
    let text = try String(contentsOfFile: file(.actuator), encoding: .utf8)
    let spoiledTexts = [
      "ajar\n", "locked\n", "locked", text + "\n", String(text.dropLast()), text.replacing(" ", with: "  "), "",
      text.replacing("locked", with: "ajar"), text + " \n", String(text.dropLast()) + "x",
    ]
    for spoiled in spoiledTexts {
      try write(spoiled, to: .actuator)
      #expect(throws: DeviceFolderFault.file(.actuator, .corrupt)) { try folder.openLock() }
    }
    try write("unlocked " + String(repeating: "0", count: 32) + "\n", to: .actuator)
    #expect(throws: DeviceFolderFault.file(.actuator, .otherDevice)) { try folder.openLock() }
    try FileManager.default.moveItem(atPath: file(.actuator), toPath: place.path + "/elsewhere")
    try FileManager.default.createSymbolicLink(
      atPath: file(.actuator), withDestinationPath: place.path + "/elsewhere")
    #expect(throws: DeviceFolderFault.file(.actuator, .file(FileError(.symbolicLink, at: file(.actuator))))) {
      try folder.openLock()
    }
  }
}
