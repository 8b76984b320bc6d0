import Foundation
import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport

import HoldfastAuthenticator

/// An authenticator as it is found after a power cut or a kill.
struct AuthenticatorAfterPowerCut {
  /// The codes that were shown before, and those that the step under way would have shown.
  let known: Shown
  let next: Shown
  let life: AuthenticatorLife

  /// The fault of the authenticator of `image`, laid out in `place`; nil if there is none.
  func fault(_ image: DiskImage, in place: TemporaryFolder) throws -> String? {
    let folder = place.path + "/a"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try image.write(to: place.path)
    if let fault = faultOfBlindings(image) { return fault }
    let authenticator: Authenticator
    do throws(AuthenticatorFault) { authenticator = try life.place.open(folder) } catch {
      let isMissing = error == .missing || error == .folder(FileError(.notFound, at: folder))
      guard isMissing, !known.isAdded else { return "cannot be opened: \(error)" }
      return nil
    }
    let records = try authenticator.records()
    guard !records.isEmpty else {
      return known.isAdded && !next.isRemoved ? "has lost its records" : nil
    }
    guard records.count == 3 else { return "has some of its records" }
    if records[0].nextCounter < known.otp || records[1].nextCounter < known.seal {
      return "takes a counter back: \(records[0].nextCounter), \(records[1].nextCounter)"
    }
    if let fault = try faultOfRecovery(authenticator, folder) { return fault }
    return try faultOfCodes(authenticator)
  }

  /// Brings an interrupted change to an end, as its user would.
  private func faultOfRecovery(_ authenticator: Authenticator, _ folder: String) throws -> String? {
    switch try authenticator.records()[0].change {
    case .none, .prepared, .open: return nil
    case .erased:
      guard let undo = known.undo else { return "has erased a secret of which nobody has the undo code" }
      try authenticator.undoChange(user: "alice", under: UndoCode(Array(undo.utf8).span))
    case .importing: try life.importAgain(at: folder)
    }
    return nil
  }

  /// The next code must be the right one, under one of the PINs that it may have now.
  private func faultOfCodes(_ authenticator: Authenticator) throws -> String? {
    let record = try authenticator.record(purpose: .otp)
    let protection = try authenticator.stored("alice", 1).usableSecret()
    let right = rfcSecret
    // A change that was reported as failed may have been made all the same.
    let attempted = known.undo == nil ? [] : ["2468"]
    for digits in Set([known.pin, next.pin, known.pinBefore, "1357"] + attempted) {
      let secret = try protection.unblinded(with: pin(digits))
      guard secret.withBytes({ $0.elementsEqual(right.span) }) else { continue }
      let code = try authenticator.code(for: record, with: pin(digits), clock: TestClock())
      return code.text.utf8.count == 6 ? nil : "gives no code"
    }
    return "has another secret"
  }

  /// Of each secret no file may hold two blindings: of all pairs of PINs only one would explain both.
  private func faultOfBlindings(_ image: DiskImage) -> String? {
    for secrets in life.blindings {
      let found = secrets.filter { secret in image.files.values.contains { $0.contains(bytes: secret) } }
      if found.count > 1 { return "holds two blindings of one secret" }
    }
    return nil
  }
}
