import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastProver

/// What `unenroll` and `wipe` remove, and leave.
@Suite struct RemovingTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let locks: [TestLock]

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    prover = Prover(state: place.file("phone"), keys: .default)
    locks = [try TestLock(), try TestLock(id: 8)]
    for lock in locks { try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) } }
  }

  private func devices(_ prover: Prover) throws -> [DeviceID] { try prover.folder.entries().map { $0.device } }

  @Test func `one enrolment is removed, and the others stay`() throws {
    let (first, second) = (locks[0].descriptor.deviceID, locks[1].descriptor.deviceID)
    try Files.removeFile(at: prover.folder.folder(of: first).file(EnrolmentFolder.configurationName))
    try prover.unenroll(first)
    #expect(try devices(prover) == [second])
    #expect(try Files.names(inFolder: place.file("phone/devices"), limit: 10) == [hexadecimal(second)])
    #expect(throws: ProverError.self) { try prover.unenroll(first) }
    #expect(try prover.folder.requiredEntry(of: second).load().descriptor == locks[1].descriptor)
    // The device can be enrolled again.
    try prover.enroll(for: locks[0].descriptor) { try locks[0].token(for: $0) }
    #expect(try devices(prover).count == 2)
  }

  @Test func `an enrolment that was replaced meanwhile is not removed`() throws {
    let lock = locks[0]
    let id = lock.descriptor.deviceID
    let before = try prover.folder.requiredEntry(of: id).load().token
    try prover.enroll(for: lock.descriptor, replacing: true) { try lock.token(for: $0) }
    #expect(try !prover.folder.remove(id, ifTokenIs: before))
    let after = try prover.folder.requiredEntry(of: id).load().token
    #expect(after != before)
    #expect(try !prover.folder.remove(id, ifTokenIs: nil))
    #expect(try prover.folder.remove(id, ifTokenIs: after))
    #expect(try devices(prover) == [locks[1].descriptor.deviceID])
    // A damaged enrolment is nobody's newer one.
    let other = locks[1].descriptor.deviceID
    try Files.removeFile(at: prover.folder.folder(of: other).file(EnrolmentFolder.configurationName))
    #expect(try prover.folder.remove(other, ifTokenIs: nil))
  }

  @Test func `everything of a prover is removed, and what is not a prover's stays`() throws {
    try place.makeFile("phone/notes")
    try place.makeFile("phone/services.json", Array("{}".utf8))
    try Files.createPrivateDirectory(at: place.file("phone/devices/.new-x"))
    #expect(try prover.wipe() == 2)
    #expect(try Files.names(inFolder: place.file("phone"), limit: 10) == ["notes"])
    #expect(try prover.wipe() == 0)
    try Files.removeFile(at: place.file("phone/notes"))
    #expect(try prover.wipe() == 0)
    #expect(throws: ProverError.self) { try prover.wipe() }
  }

  @Test func `a folder of another kind is not wiped`() throws {
    try Files.createPrivateDirectory(at: place.file("lock"))
    try place.makeFile("lock/device.json")
    #expect(throws: ProverError.self) { try Prover(state: place.file("lock"), keys: .default).wipe() }
    #expect(try Files.names(inFolder: place.file("lock"), limit: 10) == ["device.json"])
  }

  @Test(arguments: [true, false])
  func `a power cut at any write leaves whole enrolments or none, and what was removed stays away`(
    whole isWhole: Bool
  ) throws {
    let disk = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: disk.path)
    let watched = Prover(state: disk.file("phone"), keys: .default)
    for lock in locks {
      let enrolment = try prover.folder.requiredEntry(of: lock.descriptor.deviceID).load()
      try recorder.recording { try watched.folder.store(enrolment, replacing: false) }
    }
    let before = recorder.changes.count
    let first = locks[0].descriptor.deviceID
    try recorder.recording {
      if isWhole { try watched.wipe() } else { try watched.unenroll(first) }
    }
    let end = recorder.changes.count
    #expect(end > before)
    var faults: Set<String> = []
    try PowerCuts(recorder.changes).forEach(stage: { $0 < before ? 0 : $0 < end ? 1 : 2 }) { cut in
      guard cut.changeCount >= before else { return }
      let after = try TemporaryFolder(in: memoryFolder)
      try cut.image.write(to: after.path)
      let found = Prover(state: after.file("phone"), keys: .default)
      for entry in try found.folder.entries() {
        if (try? entry.load()) == nil { faults.insert("a damaged enrolment: \(cut)") }
        if cut.changeCount == end, isWhole || entry.device == first { faults.insert("an enrolment again: \(cut)") }
      }
      if !isWhole, try !devices(found).contains(locks[1].descriptor.deviceID) {
        faults.insert("another is lost: \(cut)")
      }
      // It can be repeated.
      if isWhole, try found.folder.entries().count > 0 { try found.wipe() }
      if isWhole, try found.folder.entries().count > 0 { faults.insert("a repetition leaves something: \(cut)") }
    }
    #expect(faults.isEmpty, "\(faults.prefix(5))")
  }
}
