import Foundation
import HoldfastStorage
import PowerCut
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// The power is cut after each change of the disk in a life with users.
@Suite struct UsersPowerCutTests {
  @Test func `a power cut at any point gives no code back, no counter, no lockout and no failure`() throws {
    let recording = try UsersRecording(UsersStep.life)
    var faults: [String] = []
    try PowerCuts(recording.changes).forEach(stage: recording.stepCount) { cut in
      guard faults.count < 5, let fault = try recording.fault(cut) else { return }
      faults.append("\(cut): the device \(fault)")
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }
}

/// The facts about users that a ledger knows.
private struct KnownUsers: Equatable {
  var users: [LedgerUser]
  let secrets: [String]
  let codes: [String]

  init(_ ledger: Ledger) throws {
    users = try ledger.users()
    (secrets, codes) = try ledger.read { (tables) throws(DatabaseError) in
      let secrets = try tables.database.all("SELECT user || ' ' || purpose || ' ' || hex(secret) FROM accounts") {
        (row) throws(DatabaseError) in try row.text(0)
      }
      let codes = try tables.database.all("SELECT id || ' ' || user || ' ' || purpose || ' ' || expires FROM codes") {
        (row) throws(DatabaseError) in try row.text(0)
      }
      return (secrets, codes)
    }
  }

  /// The same, with the attempt of one user recorded and not yet judged.
  func attempting(_ user: BoundedText<32>, with factors: Factors) -> KnownUsers {
    var other = self
    other.users = users.map {
      var record = $0.record
      if $0.name == user { record.countAttempt(with: factors, at: testTime) }
      return LedgerUser(name: $0.name, record: record)
    }
    return other
  }
}

/// The changes of the disk in such a life, and the facts known and codes used up after each step.
private struct UsersRecording {
  private struct Moment {
    let changeCount: Int
    let known: KnownUsers
    let spent: [SpentCode]
    let nextPassword: (UInt64) throws -> UserCode
  }

  let changes: [DiskChange]
  private let steps: [UsersStep]
  private let moments: [Moment]
  private let place: TemporaryFolder
  private let issuer: TestIssuer
  /// A token that lasts through any lockout.
  private let prover: TestProver

  init(_ steps: [UsersStep]) throws {
    let folder = try TemporaryFolder(in: memoryFolder)
    let issuers = [try TestIssuer(), try TestIssuer()]
    let life = UsersLife(in: folder, issuers: issuers)
    let recorder = try DiskRecorder(folder: folder.path)
    var moments: [Moment] = []
    for step in steps {
      guard try recorder.recording({ try step.run(life) }) else {
        throw DeviceRecording.UnexpectedStep(name: step.name)
      }
      moments.append(
        Moment(
          changeCount: recorder.changes.count, known: try KnownUsers(life.device.ledger), spent: life.spent,
          nextPassword: life.nextPassword))
    }
    (changes, self.steps, self.moments) = (recorder.changes, steps, moments)
    place = try TemporaryFolder(in: memoryFolder)
    issuer = issuers[0]
    prover = try life.device.prover { $0.expires = testTime + 9_000_000 }
  }

  func stepCount(after changeCount: Int) -> Int { moments.prefix { $0.changeCount <= changeCount }.count }

  /// The fault of the device after `cut`; nil if there is none.
  func fault(_ cut: PowerCut) throws -> String? {
    let count = stepCount(after: cut.changeCount)
    // Without trust there are no rounds; how a device is made is tried elsewhere.
    guard count >= 3 else { return nil }
    let last = moments[count - 1]
    let folder = place.path + "/device"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try cut.image.write(to: place.path)
    let device = try TestDevice(opening: folder, in: place, issuer: issuer)
    device.requireCodes()
    let found = try KnownUsers(device.ledger)
    var expected = [last.known]
    if count < steps.count {
      expected.append(moments[count].known)
      for factors in [Factors.otp, .seal] {
        if let user = steps[count].user { expected.append(last.known.attempting(user, with: factors)) }
      }
    }
    guard expected.contains(found) else { return "knows other users after \(steps[count - 1].name)" }
    return try faultOfUse(device, last)
  }

  private func faultOfUse(_ device: TestDevice, _ last: Moment) throws -> String? {
    guard let annsRecord = try device.record(), let otp = annsRecord.accounts[.otp] else { return nil }
    // Another activation may be done, and its answer not.
    let isKnown = last.known.users.contains { $0.record.id == annsRecord.id }
    if isKnown, annsRecord.lockedUntil > testTime {
      let status = try device.connect().round(prover, otp: try last.nextPassword(otp.nextPosition)).status
      guard status == .lockedOut else { return "answers \(status) to one who is locked out" }
    }
    for spent in last.spent.suffix(4) {
      device.clock.seconds = (device.clock.seconds ?? testTime) + 100_000
      if try spent.isTaken(by: device, prover) { return "takes a code again: \(spent)" }
    }
    device.clock.seconds = (device.clock.seconds ?? testTime) + 100_000
    if isKnown {
      let status = try device.connect().round(prover, otp: try last.nextPassword(otp.nextPosition)).status
      guard status == .accepted else { return "answers \(status) to the next password" }
    }
    return try device.ledger.verifyAudit().firstBroken == nil ? nil : "has a broken audit chain"
  }
}
