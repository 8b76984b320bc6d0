import Foundation
import HoldfastCore
import HoldfastOpenSSL
import PowerCut
import TestSupport
import Testing

import HoldfastAuthenticator

/// New secrets that wait, and then take the place of the old ones, with the power cut at each write.
@Suite struct ReplacementPowerCutTests {
  private static let deviceID = DeviceID([UInt8](repeating: 1, count: 16).span)!

  private static func records(_ secret: [UInt8]) -> [NewRecord] {
    [NewRecord(secret: secret), NewRecord("alice", 2, .seal, .usualSeal, secret: Array(secret.reversed()))]
  }

  @Test
  func
    `a power cut at any write leaves either the old secrets or the new ones, and one before the device knows the old`()
    throws
  {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    let path = place.file("a")
    var random = TestRandom(state: 4)
    var marks: [Int] = []
    try recorder.recording {
      let made = try AuthenticatorFolder.create(at: path, cost: .test)
      try made.add(Self.records(rfcSecret), protection: .none, random: &random)
      marks.append(recorder.changes.count)
      _ = try made.store(Self.records(randomSecret), protection: .none, replacing: true, random: &random)
      marks.append(recorder.changes.count)
      _ = try made.completeReplacement(of: "alice", deviceID: Self.deviceID)
      marks.append(recorder.changes.count)
    }
    try #require(marks == marks.sorted() && Set(marks).count == 3)
    let stage = { (count: Int) in marks.prefix { $0 <= count }.count }
    let after = try TemporaryFolder(in: memoryFolder)
    var faults: [String] = []
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      guard stage(cut.changeCount) > 0, faults.count < 5 else { return }
      if let fault = try fault(cut.image, in: after, at: stage(cut.changeCount)) { faults.append("\(cut): \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test func `a state with secrets that wait is not exported, and an import erases them first`() throws {
    var random = TestRandom(state: 4)
    let place = try TemporaryFolder(in: memoryFolder)
    let made = try AuthenticatorFolder.create(at: place.file("a"), cost: .test)
    try made.add(Self.records(rfcSecret), protection: .none, random: &random)
    let text = Array("a passphrase".utf8)
    let passphrase = try Passphrase(text.span)
    let state = Array(try made.exportState(under: passphrase, cost: .test, random: &random).utf8)
    _ = try made.store(Self.records(randomSecret), protection: .none, replacing: true, random: &random)
    #expect(throws: AuthenticatorFault.unknownEnd) {
      var random = TestRandom(state: 6)
      return try made.exportState(under: passphrase, cost: .test, random: &random)
    }
    #expect(try made.waitingRecords(of: "alice").count == 2)
    #expect(try made.importState(state.span, under: passphrase, replacing: true) == 2)
    #expect(try made.waitingRecords(of: "alice").isEmpty)
    _ = try made.exportState(under: passphrase, cost: .test, random: &random)
  }

  private func fault(_ image: DiskImage, in place: TemporaryFolder, at stage: Int) throws -> String? {
    let folder = place.path + "/a"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try image.write(to: place.path)
    let authenticator = try AuthenticatorFolder.open(at: folder, cost: .test)
    let secrets = try (1...2).map { index in
      try authenticator.stored("alice", index).usableSecret().bytes.withBytes { Array($0) }
    }
    let isOld = secrets == [rfcSecret, rfcSecret.reversed()]
    let isNew = secrets == [randomSecret, randomSecret.reversed()]
    let waiting = try authenticator.waitingRecords(of: "alice").count
    switch stage {
    case 1: return isOld && [0, 2].contains(waiting) ? nil : "before the device knows the new secrets"
    case 2: return (isOld && waiting == 2) || (isNew && waiting == 0) ? nil : "while they take the place"
    default: return isNew && waiting == 0 ? nil : "once they have the place"
    }
  }
}
