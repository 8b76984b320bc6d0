import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastStorage
import PowerCut
import TestSupport

import HoldfastDevice

/// A place where a device is laid out as a power cut left it, and the provers that it meets then.
struct DeviceAfterPowerCut {
  private let place: TemporaryFolder
  private let issuer: TestIssuer
  private let welcome: TestProver
  private let used: TestProver
  private let known: TestProver
  private let revoked: TestProver

  /// `device` is the one, or one of the same id and key.
  init(_ device: TestDevice) throws {
    place = try TemporaryFolder(in: memoryFolder)
    issuer = device.issuer
    welcome = try device.prover { ($0.generation, $0.expires) = (9, testTime + 900_000) }
    used = try device.prover(DeviceStep.oneUse)
    known = try device.prover()
    revoked = try device.prover(DeviceStep.revoked)
  }

  /// The fault of the device of `image`; nil if there is none. `compare` finds those of its contents.
  func fault(
    _ image: DiskImage, isMade: Bool = true, compare: (DeviceContents) throws -> String?
  ) throws -> String? {
    let folder = place.path + "/device"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try image.write(to: place.path)
    do {
      let device = try TestDevice(opening: folder, in: place, issuer: issuer)
      return try compare(try DeviceContents(device)) ?? faultOfUse(device)
    } catch let fault as DeviceFolderFault {
      return isMade ? "cannot be opened: \(fault)" : faultOfUnmade(folder, fault)
    }
  }

  /// Before it was made, a folder says that it is not, and one without a device can be used.
  private func faultOfUnmade(_ folder: String, _ fault: DeviceFolderFault) -> String? {
    switch fault {
    case .halfMade, .missing, .folder(FileError(.notFound, at: folder)):
      do { _ = try DeviceScript.make(at: folder) } catch { return "says \(fault), and cannot be made: \(error)" }
      return nil
    default: return "is half-made, and says: \(fault)"
    }
  }

  private func faultOfUse(_ device: TestDevice) throws -> String? {
    guard try device.ledger.verifyAudit().firstBroken == nil else { return "has a broken audit chain" }
    let before = try device.ledger.summary()
    let start = try device.ledger.start(realClock: testTime)
    guard start == before.bootCount + 1 else { return "does not count its starts" }
    let disorderlyEnds = before.disorderlyEnds + (before.hasUnfinishedRun ? 1 : 0)
    guard try device.ledger.summary().disorderlyEnds == disorderlyEnds else { return "does not know how it ended" }
    try device.ledger.trust(.signing(issuer.point), realClock: testTime)
    let kept = try DeviceContents(device).tables
    if kept["uses"] != [], try device.connect().round(used).status == .accepted { return "gives a use back" }
    if kept["nonces"] != [] {
      let nonce = [UInt8](repeating: 9, count: 16)
      let status = try device.connect().compatibilityRound(known, nonce: nonce)
      if status == .accepted { return "takes a nonce again" }
    }
    if kept["bulletins"] != [], try device.connect().round(revoked).status != .tokenRevoked {
      return "accepts a revoked token"
    }
    if let fault = try faultOfRepetitions(device) { return fault }
    let status = try device.connect().round(welcome).status
    guard status == .accepted else { return "answers \(status) to a good round" }
    return device.lock.current == .unlocked ? nil : "does not move its lock"
  }

  /// Each request that was recorded comes again: it must not be carried out once more.
  private func faultOfRepetitions(_ device: TestDevice) throws -> String? {
    for (number, command) in DeviceStep.numberedCommands {
      let record = try device.ledger.read { (tables) throws(DatabaseError) in
        let (keyID, tokenID) = (try? issuer.keyID(), known.claims.tokenID)
        return try tables.request(tables.key(keyID), .copying(tokenID.bytes))
      }
      guard record?.covers(number, clockFloor: 0) == true else { continue }
      // Where the command would move the lock from, if it were carried out.
      try device.lock.move(to: command == "unlock" ? .locked : .unlocked)
      let verdict = try device.connect().round(known, command, number: number)
      guard verdict.status != .accepted || verdict.notice?.highestRequestNumber != nil,
        device.lock.current == (command == "unlock" ? .locked : .unlocked)
      else { return "carries out number \(number) again" }
    }
    return nil
  }
}
