import HoldfastCore
import PowerCut
import TestSupport

import HoldfastAuthenticator

/// The steps of an authenticator's life, one process after the other.
enum AuthenticatorStep: Equatable {
  case add
  case code
  case pair
  case seal
  case prepare
  case change
  case undo
  case confirm
  case challenge
  case importState
  case remove

  /// Everything that writes, some of it twice.
  static let life: [AuthenticatorStep] = [
    .add, .code, .seal, .prepare, .change, .code, .undo, .code, .pair, .prepare, .change, .confirm, .seal, .challenge,
    .importState, .code, .remove,
  ]
}

/// The codes that somebody who watched an authenticator saw, which must never come back.
struct Shown: Equatable {
  /// The first counters that were not shown.
  var otp: UInt64 = 0
  var seal: UInt64 = 0
  /// The PIN that codes are right with.
  var pin = "1357"
  /// The undo code of a change that is open, and the PIN of before.
  var undo: String?
  var pinBefore = "1357"
  var isAdded = false
  var isRemoved = false
}

/// An authenticator that is opened anew for each step, as the command line does.
struct AuthenticatorLife {
  let path: String
  let place: AuthenticatorPlace
  var shown = Shown()
  /// The codes that the steps up to the one under way may have shown.
  private(set) var codes: [String] = []
  private var random = TestRandom(state: 99)
  /// Exported before the PIN was changed for the first time.
  private var state: [UInt8] = []

  /// Every blinding of the one-time passwords' secret, and every one of the seals', that was in the file.
  private(set) var blindings: [Set<[UInt8]>] = [[], []]

  init(path: String, in place: AuthenticatorPlace = .folder) {
    (self.path, self.place) = (path, place)
  }

  /// The same in another folder, to which its files were copied.
  func moved(to path: String) -> AuthenticatorLife {
    var moved = AuthenticatorLife(path: path, in: place)
    (moved.shown, moved.state, moved.random) = (shown, state, random)
    return moved
  }

  /// Keeps how the secrets are blinded now.
  mutating func noteBlindings() {
    guard let authenticator = try? place.open(path) else { return }
    for index in 0..<2 {
      if let secret = try? authenticator.stored("alice", index + 1).secret {
        blindings[index].insert(secret.bytes.withBytes { [UInt8]($0) })
      }
    }
  }

  private static let otp = NewRecord(secret: rfcSecret)
  private static let seal = NewRecord("alice", 2, .seal, .ocra("OCRA-1:HOTP-SHA256-8:C-QH64"), secret: randomSecret)
  private static let host = NewRecord(
    "alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: rfcSecret.reversed())

  /// Does a step; says whether it did what it is there for.
  mutating func does(_ step: AuthenticatorStep) -> Bool {
    do {
      try perform(step)
      return true
    } catch { return false }
  }

  private mutating func perform(_ step: AuthenticatorStep) throws {
    let authenticator = try step == .add ? place.create(path) : place.open(path)
    switch step {
    case .add:
      try authenticator.add([Self.otp, Self.seal, Self.host], protection: pinSecret(shown.pin), random: &random)
      shown.isAdded = true
      state = Array(
        try authenticator.exportState(
          under: Passphrase(Array("correct horse".utf8).span), cost: .test, random: &random
        ).utf8)
    case .code:
      let record = try authenticator.record(purpose: .otp)
      let code = try authenticator.code(for: record, with: pinSecret(shown.pin), clock: TestClock())
      codes.append(code.text)
      shown.otp = record.nextCounter + 1
    case .pair:
      let record = try authenticator.record(purpose: .otp)
      let pair = try authenticator.codePair(for: record, with: pinSecret(shown.pin), clock: TestClock())
      codes += pair.map(\.text)
      shown.otp = record.nextCounter + 2
    case .seal:
      let record = try authenticator.record(purpose: .seal)
      let request = try SealRequest(command: "open-safe", parameters: ["1"])
      _ = try authenticator.seal(request, for: record, with: pinSecret(shown.pin), clock: TestClock())
      shown.seal = record.nextCounter + 1
    case .prepare:
      let record = try authenticator.record(purpose: .otp)
      let code = try authenticator.prepareChange(of: record, random: &random)
      shown.undo = try code.withText { String(decoding: [UInt8]($0), as: UTF8.self) }
      shown.pinBefore = shown.pin
    case .change:
      let record = try authenticator.record(purpose: .otp)
      try authenticator.change(
        record, from: pinSecret(shown.pin), to: pinSecret("2468"), under: undoCode(), random: &random)
      shown.pin = "2468"
    case .undo:
      try authenticator.undoChange(user: "alice", under: undoCode())
      (shown.pin, shown.undo) = (shown.pinBefore, nil)
    case .confirm:
      guard try authenticator.confirmProtection(user: "alice") else { throw AuthenticatorFault.noChange }
      shown.undo = nil
    case .challenge:
      _ = try authenticator.challengeDevice(authenticator.record(purpose: .host), random: &random)
    case .importState:
      try authenticator.importState(
        state.span, under: Passphrase(Array("correct horse".utf8).span), replacing: true)
      shown.pin = "1357"
    case .remove:
      try authenticator.remove(user: "alice")
      shown.isRemoved = true
    }
  }

  private func undoCode() throws -> UndoCode {
    try UndoCode(Array((shown.undo ?? "").utf8).span)
  }

  private func pinSecret(_ digits: String) throws -> ProtectionSecret { try HoldfastAuthenticatorTests.pin(digits) }

  /// Whether the records can be brought back from what the user has: the state string.
  func importAgain(at path: String) throws {
    let authenticator = try place.open(path)
    try authenticator.importState(
      state.span, under: Passphrase(Array("correct horse".utf8).span), replacing: true)
  }
}
