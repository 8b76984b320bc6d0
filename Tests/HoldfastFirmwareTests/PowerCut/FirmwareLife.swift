import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// A small device's life, each step of which begins with a start of the device, so that it can be lived again from there.
final class FirmwareLife {
  typealias Machine = TestMachine<WatchedStore>

  let firmware: TestFirmware
  var memory = Memory()
  private let counted: TestProver
  let lasting: TestProver
  private let newer: TestProver
  private let stale: TestProver

  init() throws {
    firmware = try TestFirmware(issuerCount: 2, homeRefuses: false)
    firmware.clock.seconds = nil
    lasting = try firmware.prover { $0.expires = testTime + 9_000_000 }
    counted = try firmware.prover {
      ($0.tokenID, $0.maximumUses, $0.expires) = (TokenID(filledWith: 2), 2, testTime + 9_000_000)
    }
    newer = try firmware.prover(from: 1) {
      ($0.tokenID, $0.generation, $0.issuedAt) = (TokenID(filledWith: 3), 5, testTime + 50)
    }
    stale = try firmware.prover(from: 1) { ($0.tokenID, $0.generation) = (TokenID(filledWith: 4), 4) }
    var store = try firmware.open()
    try store.add(bob, otp: totpMethod, seal: challengeSealMethod, secret: usersSecret)
  }

  /// The facts about it that others remember.
  struct Memory {
    /// The values that were accepted once, and must never be again.
    fileprivate(set) var spent: [(FirmwareLife, Machine) throws -> Bool] = []
    fileprivate var secrets: [CodePurpose: [UInt8]] = [:]
    fileprivate var text = ""
  }

  struct Step {
    let name: String
    let run: (FirmwareLife, Machine) throws -> Bool
  }

  /// Whether a step's round writes nothing: it repeats a number, or is denied and changes nothing.
  static func isSilent(_ step: Int) -> Bool {
    let name = steps[step].name
    return name.contains(" again: ")
      || ["nonce 1: deviceMismatch", "no more uses", "a revoked token", "locked out"].contains(name)
  }

  /// Starts the device with power for that many words.
  func boot(wordCount: Int) throws -> Machine {
    var store = WatchedStore(try firmware.open(wordCount: wordCount))
    let bootCount = try store.promise { (store: inout TestStore) throws(DeviceFault) in
      try store.start(realClock: nil)
    }
    return try Machine(store, of: firmware, bootCount: bootCount)
  }

  private func ask(
    _ machine: Machine, _ prover: TestProver, _ command: String = "unlock", otp: UserCode? = nil,
    seal: UserCode? = nil, is status: Status
  ) throws -> Bool {
    guard try machine.status(prover, command, otp: otp, seal: seal) == status else { return false }
    guard status == .accepted, otp != nil || seal != nil else { return true }
    memory.spent.append { (life, machine) in
      try machine.status(life.lasting, command, otp: otp, seal: seal) == .accepted
    }
    return true
  }

  private static func round(_ name: String, _ status: Status, _ prover: KeyPath<FirmwareLife, TestProver>) -> Step {
    Step(name: name) { try $0.ask($1, $0[keyPath: prover], is: status) }
  }

  private static func password(_ name: String, _ counter: UInt64, _ status: Status) -> Step {
    Step(name: name) {
      try $0.ask(
        $1, $0.lasting, "configure", otp: TestSupport.password(counter, secret: $0.memory.secrets[.otp] ?? usersSecret),
        is: status)
    }
  }

  private static var wrong: Step {
    Step(name: "a wrong password") {
      try $0.ask($1, $0.lasting, "configure", otp: UserCode(user: ann, code: BoundedText("000000")), is: .otpRejected)
    }
  }

  private static func nonce(_ byte: UInt8, _ status: Status) -> Step {
    Step(name: "nonce \(byte): \(status)") { (life, machine) in
      guard try machine.compatibility(life.lasting, nonce: byte) == status else { return false }
      life.memory.spent.append { (life, machine) in
        try machine.compatibility(life.lasting, nonce: byte) == .accepted
      }
      return true
    }
  }

  /// A round with a number, which must act at most once whenever it comes again.
  private static func numbered(_ number: UInt64, _ command: String) -> Step {
    Step(name: "number \(number): \(command)") { (life, machine) in
      guard try machine.round(life.lasting, command, number: number).status == .accepted else { return false }
      life.memory.spent.append { (life, machine) in
        let actedBefore = machine.actuator.performed.count
        let verdict = try machine.round(life.lasting, command, number: number)
        let isAnswered = verdict.status == .accepted || verdict.status == .internal
        return machine.actuator.performed.count > actedBefore || !isAnswered
          || verdict.notice?.highestRequestNumber == nil
      }
      return true
    }
  }

  /// The same number again, which changes nothing.
  private static func repeated(_ number: UInt64, _ command: String, _ status: Status) -> Step {
    Step(name: "number \(number) again: \(command)") { (life, machine) in
      let actedBefore = machine.actuator.performed.count
      let verdict = try machine.round(life.lasting, command, number: number)
      return verdict.status == status && machine.actuator.performed.count == actedBefore
    }
  }

  private static func issue(_ purpose: OneUseCode.Purpose, seed: UInt64) -> Step {
    Step(name: "a code for ann: \(purpose)") { (life, machine) in
      life.memory.text = try machine.withStore { watched in
        try watched.promise {
          try $0.issue(
            purpose, to: ann, otp: purpose == .activation ? hotpMethod : nil,
            seal: purpose == .activation ? counterSealMethod : nil, seed: seed)
        }
      }
      return true
    }
  }

  private static func use(_ purpose: OneUseCode.Purpose) -> Step {
    Step(name: "ann uses it: \(purpose)") { (life, machine) in
      var visitor = TestVisitor()
      let text = life.memory.text
      guard
        try visitor.use(text, for: purpose, challenge: machine.challenge(), respond: { machine.respond($0) })
      else { return false }
      if purpose == .activation { life.memory.secrets = visitor.secrets }
      life.memory.spent.append { (_, machine) in
        var visitor = TestVisitor()
        return try visitor.use(text, for: purpose, challenge: machine.challenge()) { machine.respond($0) }
      }
      return true
    }
  }

  /// A bulletin of the first key revokes tokens, which must be refused from then on, and is never taken again.
  private static func bulletin(_ number: UInt64, after predecessor: UInt64, revokes ids: ClosedRange<UInt8>) -> Step {
    Step(name: "bulletin \(number)") { (life, machine) in
      var bulletin = TestBulletin(for: life.firmware.deviceID)
      bulletin.number = 1000 * testTime + number
      bulletin.predecessor = predecessor == 0 ? 0 : 1000 * testTime + predecessor
      bulletin.revoked = ids.map { (TokenID(filledWith: $0), until: testTime + 9_000_000) }
      let signed = try life.firmware.issuers[0].bulletin(bulletin)
      guard try machine.deliver(signed, by: life.lasting) == .taken else { return false }
      life.memory.spent.append { (life, machine) in try machine.deliver(signed, by: life.lasting) == .taken }
      let revoked = try life.firmware.prover { $0.tokenID = TokenID(filledWith: ids.upperBound) }
      life.memory.spent.append { (_, machine) in try machine.status(revoked, "status") != .tokenRevoked }
      return true
    }
  }

  /// The home acknowledges the log up to now, which never goes back; a receipt for another hash is recorded, and acknowledges nothing.
  private static func receipt(isRight: Bool) -> Step {
    Step(name: isRight ? "a receipt" : "a wrong receipt") { (life, machine) in
      guard try machine.status(life.lasting, "status") == .accepted else { return false }
      _ = try machine.challenge()
      var chain = machine.withStore { $0.store.audit }
      if !isRight { chain.head = Digest() }
      let receipt = try life.firmware.receipt(chain)
      guard machine.acknowledgeAgain(receipt) == (isRight ? .taken : .refused) else { return false }
      let acknowledged = chain.count
      guard isRight else { return true }
      life.memory.spent.append { (life, machine) in
        if machine.withStore({ $0.store.acknowledged }) < acknowledged { return true }
        return try machine.acknowledge(life.firmware.receipt(chain), by: life.lasting) != .known
      }
      return true
    }
  }

  private static var compaction: Step {
    Step(name: "the journal moves") { (_, machine) in
      try machine.withStore { watched in
        try watched.promise { try $0.compact() }
      }
      return true
    }
  }

  static var steps: [Step] {
    [
      round("a round", .accepted, \.lasting),
      round("one of two uses", .accepted, \.counted),
      numbered(1000, "unlock"), repeated(1000, "unlock", .accepted), repeated(1000, "lock", .commandRefused),
      numbered(1063, "status"), repeated(1000, "unlock", .internal),
      nonce(1, .accepted), nonce(1, .deviceMismatch),
      issue(.activation, seed: 5), use(.activation),
      password("a password", 0, .accepted), password("the same again", 0, .otpRejected),
      Step(name: "a seal") {
        try $0.ask(
          $1, $0.lasting, "lock", seal: counterSeal(0, "lock", secret: $0.memory.secrets[.seal]!), is: .accepted)
      },
      receipt(isRight: true),
      compaction,
      repeated(1063, "status", .accepted), numbered(1062, "unlock"), receipt(isRight: false),
      round("the other use", .accepted, \.counted), round("no more uses", .usesExhausted, \.counted),
      round("a higher generation", .accepted, \.newer), round("a revoked token", .tokenRevoked, \.stale),
      password("one far off", 50, .otpRejected), password("the next one", 51, .accepted),
      Step(name: "a host code") {
        try $1.round($0.lasting, "host-code", parameters: ["bob", "0123456789abcdef"]).status == .accepted
      },
      wrong, wrong, wrong, wrong, wrong, password("locked out", 52, .lockedOut),
      bulletin(1, after: 0, revokes: 0x81...0x82),
      Step(name: "strangers") { (life, machine) in
        for _ in 0..<3 { _ = machine.respond([UInt8](try machine.challenge())) }
        try machine.withStore { watched in
          try watched.promise {
            $0.rest(recordsTotals: true, realClock: nil)
            // It does not say so itself: nobody waits for it.
            if $0.isFailed { throw DeviceFault.store }
          }
        }
        return true
      },
      compaction,
      bulletin(2, after: 1, revokes: 0x82...0xa1), receipt(isRight: true),
      issue(.unlock, seed: 6), use(.unlock), password("after it", 52, .accepted),
      nonce(2, .accepted),
      issue(.activation, seed: 7), use(.activation), password("a new password", 0, .accepted),
    ]
  }
}
