import TestSupport
import Testing

import HoldfastCore

/// When the device asks the actuator for a place, and what it tells it.
@Suite struct ActuatorTests {
  /// An actuator that counts its places.
  private final class PlacedMachine: Actuator {
    var freeCount = 1
    var askedCount = 0
    var reservedCount = 0
    var performed: [AcceptedRound] = []
    var unknown: BoundedText<32>?
    var failure: ActuatorFailure?

    func carriesOut(_ command: BoundedText<32>) -> Bool { command != unknown }

    func reservePlace() -> Bool {
      askedCount += 1
      guard freeCount > 0 else { return false }
      freeCount -= 1
      reservedCount += 1
      return true
    }

    func releasePlace() {
      freeCount += 1
      reservedCount -= 1
    }

    func perform(
      _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
    ) throws(ActuatorFailure) {
      #expect(reservedCount == 1)
      releasePlace()
      performed.append(copy round)
      do throws(EncodingFault) { try result.append("done") } catch { throw ActuatorFailure() }
      if let failure { throw failure }
    }

    func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
      Issue.record("the device knows whose round it is")
    }
  }

  /// A whole round: the verdict, and the result.
  private func round(
    _ device: ExampleDevice, _ machine: PlacedMachine, token: ExampleToken = ExampleToken(),
    _ change: (inout Request) -> Void = { _ in }
  ) throws -> (verdict: ProverOutcome, result: String) {
    var request = Request(command: "unlock")
    change(&request)
    var prover = try Prover.with(try token.token(), request: request)
    let message = try device.answer(from: &prover)
    var machine = machine
    _ = device.session.respond(to: message.span, waitedMilliseconds: 0, actuator: &machine)
    guard case .done(let verdict) = try prover.receive(hex(device.outgoing).span) else { throw ProverFault.malformed }
    return (verdict, String(decoding: prover.reply.result.array, as: UTF8.self))
  }

  @Test func `an accepted command takes one place, and the actuator learns whose round it is`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    let (verdict, result) = try round(device, machine)
    #expect(verdict.status == .accepted && result == "done")
    #expect(machine.askedCount == 1 && machine.freeCount == 1)
    let subject = try #require(device.store.rounds.last?.subject)
    #expect(machine.performed == [AcceptedRound(sequence: 1, user: nil, subject: subject)] && !subject.isEmpty)
  }

  @Test func `without a place the round is busy, and neither its number nor its use is recorded`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    machine.freeCount = 0
    let token = ExampleToken { $0.maximumUses = 1 }
    let (verdict, result) = try round(device, machine, token: token) { $0.number = 7 }
    #expect(verdict.status == .busy && verdict.isAuthenticated && !verdict.isRepetition && result.isEmpty)
    #expect(device.store.requests.isEmpty && device.store.uses.isEmpty && device.store.acting.isEmpty)
    #expect(device.store.generations.isEmpty)
    machine.freeCount = 1
    #expect(try round(device, machine, token: token) { $0.number = 7 }.verdict.status == .accepted)
    #expect(machine.performed.count == 1)
  }

  @Test func `a round that the rules deny asks for no place`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    device.policy.rules["unlock"]?.factors = [.device, .otp]
    #expect(try round(device, machine).verdict.status == .factorMissing)
    device.policy.rules["unlock"] = nil
    #expect(try round(device, machine).verdict.status == .commandRefused)
    #expect(machine.askedCount == 0)
  }

  @Test func `a repetition asks for no place`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    #expect(try round(device, machine) { $0.number = 7 }.verdict.status == .accepted)
    machine.freeCount = 0
    let again = try round(device, machine) { $0.number = 7 }.verdict
    #expect(again.status == .accepted && again.isRepetition)
    #expect(machine.askedCount == 1 && machine.performed.count == 1)
  }

  @Test func `a place is given back if the code is wrong, or if the round cannot be recorded`() throws {
    let (coded, machine) = (try CodedDevice([.device, .otp], otp: hotpMethod), PlacedMachine())
    let wrong = try round(coded.device, machine, token: coded.token) {
      $0.codes[.otp] = UserCode(user: "ann", code: "000000")
    }
    #expect(wrong.verdict.status == .otpRejected)
    #expect(machine.askedCount == 1 && machine.freeCount == 1)
    let device = try ExampleDevice()
    // The decision is made, and then the write fails.
    device.store.failsToWrite = true
    #expect(try round(device, machine).verdict.status == .internal)
    #expect(machine.askedCount == 2 && machine.freeCount == 1 && machine.performed.isEmpty)
  }

  @Test func `the actuator learns the user whose code was right`() throws {
    let (coded, machine) = (try CodedDevice([.device, .otp], otp: hotpMethod), PlacedMachine())
    let code = try coded.otp(0)
    let right = try round(coded.device, machine, token: coded.token) {
      $0.codes[.otp] = UserCode(user: "ann", code: code)
    }
    #expect(right.verdict.status == .accepted)
    #expect(machine.performed.map(\.user) == ["ann"] && machine.askedCount == 1)
    // A policy that knows no spare authenticators does not ask whose a user's is.
    coded.device.store.mainUsers = ["ann": "bob"]
    let next = try coded.otp(1)
    let again = try round(coded.device, machine, token: coded.token) {
      $0.codes[.otp] = UserCode(user: "ann", code: next)
    }
    #expect(again.verdict.status == .accepted)
    #expect(machine.performed.map(\.user) == ["ann", "ann"])
  }

  @Test func `without a place no code is looked at, and no attempt is counted`() throws {
    let (coded, machine) = (try CodedDevice([.device, .otp], otp: hotpMethod), PlacedMachine())
    let before = coded.ann
    coded.device.store.onAttempt = { Issue.record("the code was looked at") }
    machine.freeCount = 0
    let busy = try round(coded.device, machine, token: coded.token) {
      $0.codes[.otp] = UserCode(user: "ann", code: "000000")
    }
    #expect(busy.verdict.status == .busy && coded.ann == before)
  }

  @Test func `a command that nobody carries out is refused, and nothing of it is recorded`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    machine.unknown = "unlock"
    let (verdict, _) = try round(device, machine) { $0.number = 7 }
    #expect(verdict.status == .commandRefused && verdict.notice.refusal == .unknownToActuator)
    #expect(machine.askedCount == 0 && device.store.requests.isEmpty)
  }

  @Test func `a failure is internal with the actuator's words, and is told to the store`() throws {
    let (device, machine) = (try ExampleDevice(), PlacedMachine())
    // Words that look like the reason of a denial are not one.
    machine.failure = ActuatorFailure(.timedOut, text: "notInPolicy")
    let (verdict, result) = try round(device, machine) { $0.number = 7 }
    #expect(verdict.status == .internal && verdict.notice.refusal == nil && result == "notInPolicy")
    #expect(device.store.failures.map(\.failure.reason) == [.timedOut])
    #expect(device.store.failures.map(\.round.sequence) == [1])
    machine.failure = ActuatorFailure(isUnknownCommand: true)
    #expect(try round(device, machine).verdict.notice.refusal == .unknownToActuator)
    #expect(machine.freeCount == 1)
  }

  @Test func `an entry about a parameter or a failure reads back, and a changed one does not`() throws {
    let events: [AuditEvent] = [
      .parameter(AuditedParameter(round: 7, index: 0, .digest(Digest(filledWith: 5)))),
      .parameter(AuditedParameter(round: 1 << 40, index: 7, .text("door 7"))),
      .failed(AuditedFailure(round: 7, ActuatorFailure(.badAnswer, text: "words"))),
      .failed(AuditedFailure(round: 7, ActuatorFailure())),
    ]
    for event in events {
      let entry = AuditEntry(sequence: 9, time: 10, event: event)
      var bytes: [UInt8] = []
      entry.encode(into: &bytes)
      #expect(try AuditEntry(bytes.span) == entry)
      for other in [bytes.dropLast(), bytes + [0xf6]] {
        #expect(throws: EncodingFault.self) { try AuditEntry(other.span) }
      }
    }
    // Index 8, reason 8.
    for bad in [hex("86090a13070860"), hex("86090a14070860")] {
      #expect(throws: EncodingFault.unexpected) { try AuditEntry(bad.span) }
    }
  }
}
