import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// The things for which a small device has less room than a ledger on Linux.
@Suite struct FlashStoreLimitsTests {
  let firmware: TestFirmware
  let machine: TestMachine<TestStore>

  init() throws {
    firmware = try TestFirmware(issuerCount: 2)
    firmware.clock.seconds = nil
    machine = try TestMachine(firmware.open(), of: firmware)
  }

  private func counted(_ id: UInt8, expires: UInt64 = testTime + 1000) throws -> TestProver {
    try firmware.prover { ($0.tokenID, $0.maximumUses, $0.expires) = (TokenID(filledWith: id), 2, expires) }
  }

  @Test func `the uses of 64 tokens are counted; another token is busy, and those that are known go on`() throws {
    for id: UInt8 in 0..<64 { #expect(try machine.status(counted(id)) == .accepted) }
    #expect(try machine.status(counted(64)) == .busy)
    #expect(try machine.status(counted(0)) == .accepted)
    #expect(try machine.status(counted(0)) == .usesExhausted)
    #expect(try machine.status(firmware.prover()) == .accepted)
    #expect(machine.actuator.performed.count == 66)
  }

  @Test func `half of the places are for nonces, and a uses' place is left to the token`() throws {
    // A token has places for eight.
    let provers = try (0..<5).map { number in
      try firmware.prover { $0.tokenID = TokenID(filledWith: 0xf0 + UInt8(number)) }
    }
    for nonce: UInt8 in 0..<32 {
      #expect(try machine.compatibility(provers[Int(nonce) / 8], nonce: nonce) == .accepted)
    }
    #expect(try machine.compatibility(provers[4], nonce: 32) == .busy)
    #expect(try machine.compatibility(provers[3], nonce: 31) == .deviceMismatch)
    for id: UInt8 in 0..<32 { #expect(try machine.status(counted(id)) == .accepted) }
    #expect(try machine.status(counted(32)) == .busy)
  }

  @Test func `the uses and the nonces of one token are counted apart`() throws {
    let prover = try counted(1)
    for (nonce, status) in [
      (1, .accepted), (1, .deviceMismatch), (2, .accepted), (1, .deviceMismatch), (3, .usesExhausted),
      (2, .deviceMismatch),
    ] as [(UInt8, Status)] {
      #expect(try machine.compatibility(prover, nonce: nonce) == status, "\(nonce)")
    }
    #expect(firmware.contents() == (try machine.withStore { try $0.contents() }))
  }

  @Test(arguments: [1 << 32, 3 << 32] as [UInt64])
  func `the uses of a token that lasts beyond 32 bits of seconds are counted`(expires: UInt64) throws {
    let prover = try counted(1, expires: expires)
    for _ in 0..<2 { #expect(try machine.status(prover) == .accepted) }
    for other in [machine, try TestMachine(firmware.open(), of: firmware)] {
      #expect(try other.status(prover) == .usesExhausted)
    }
  }

  @Test func `uses are kept until the latest exp under which the token came`() throws {
    for expires in [1000, 100] as [UInt64] {
      #expect(try machine.status(counted(1, expires: testTime + expires)) == .accepted)
    }
    let later = try firmware.prover(from: 1) { $0.issuedAt = testTime + 500 }
    #expect(try machine.status(later) == .accepted)
    for other in [machine, try TestMachine(firmware.open(), of: firmware)] {
      #expect(try other.status(counted(1)) == .usesExhausted)
    }
  }

  @Test func `a token of generation 0 counts until its issuer's key has a floor`() throws {
    func zeroth(_ issuer: Int) throws -> TestProver { try firmware.prover(from: issuer) { $0.generation = 0 } }
    #expect(try machine.status(zeroth(0)) == .accepted)
    #expect(try machine.status(firmware.prover()) == .accepted)
    #expect(try machine.status(zeroth(0)) == .tokenRevoked)
    #expect(try machine.status(zeroth(1)) == .accepted)
  }

  @Test func `what has expired by the clock floor makes room, and not a second before`() throws {
    for id: UInt8 in 0..<64 {
      #expect(try machine.status(counted(id, expires: testTime + 100 + UInt64(id))) == .accepted)
    }
    let later = try firmware.prover(from: 1) { $0.issuedAt = testTime + 99 }
    #expect(try machine.status(later) == .accepted)
    #expect(try machine.status(counted(64)) == .busy)
    let atLast = try firmware.prover(from: 1) { ($0.issuedAt, $0.tokenID) = (testTime + 100, TokenID(filledWith: 9)) }
    #expect(try machine.status(atLast) == .accepted)
    #expect(try machine.status(counted(64)) == .accepted)
    #expect(try machine.status(counted(65)) == .busy)
    #expect(firmware.contents() == (try machine.withStore { try $0.contents() }))
  }

  // MARK: Request numbers

  private func numbered(_ id: UInt8, expires: UInt64 = testTime + 1000) throws -> TestProver {
    // Each byte of the id is another one, so that it matters which are compared.
    let bytes = (0..<16 as Range<UInt8>).map { id &+ 3 &* $0 }
    return try firmware.prover { ($0.tokenID, $0.expires) = (fixed(bytes), expires) }
  }

  private func ask(_ id: UInt8, _ number: UInt64 = 7, on other: TestMachine<TestStore>? = nil) throws -> TestVerdict {
    try (other ?? machine).round(try numbered(id), number: number)
  }

  /// Whether the device knows the number 7 of a token, which it must not carry out then.
  private func knows(_ id: UInt8, on other: TestMachine<TestStore>? = nil) throws -> Bool {
    let verdict = try ask(id, on: other)
    return verdict.status == .accepted && verdict.notice?.highestRequestNumber == 7
  }

  /// Has accepted a number of each of 64 tokens, one every second; the clock stands at the last.
  private func fillNumbers() throws {
    for id: UInt8 in 0..<64 {
      if id > 0 { firmware.clock.advance(milliseconds: 1000) }
      #expect(try ask(id).status == .accepted)
    }
  }

  @Test
  func `the request numbers of 64 tokens are kept, and one more is busy as long as the oldest is of the last minute`()
    throws
  {
    try fillNumbers()
    // The oldest record is 63 s old, so that it made way for none yet: write it anew.
    #expect(try ask(0, 8).status == .accepted)
    #expect(try ask(1, 8).status == .accepted)
    #expect(try ask(2, 8).status == .accepted)
    firmware.clock.advance(milliseconds: 0)
    let before = try machine.withStore { try $0.contents() }
    // Token 3 is 60 s old now.
    let refused = try ask(64)
    #expect(refused.status == .busy)
    #expect(refused.notice?.highestRequestNumber == nil)
    let after = try machine.withStore { try $0.contents() }
    #expect(after.items == before.items)
    #expect(try ask(4, 8).status == .accepted)
    #expect(try machine.round(try numbered(64)).status == .accepted)
    firmware.clock.advance(milliseconds: 1000)
    #expect(try ask(64).status == .accepted)
    for id: UInt8 in [4, 5, 63] { #expect(try knows(id) == (id != 4), "\(id)") }
    #expect(try ask(65).status == .busy)
  }

  @Test func `whatever was dropped stays dropped after a start, and nothing else is, also once the journal has moved`()
    throws
  {
    try fillNumbers()
    firmware.clock.advance(milliseconds: 1000)
    for id: UInt8 in 64..<67 { #expect(try ask(id).status == .accepted, "\(id)") }
    #expect(machine.actuator.performed.count == 67)
    for hasMoved in [false, true] {
      if hasMoved { try machine.withStore { (store: inout TestStore) throws in try store.compact() } }
      let other = try TestMachine(firmware.open(), of: firmware)
      for id: UInt8 in 3..<67 { #expect(try knows(id, on: other), "\(id)") }
      #expect(other.actuator.performed.isEmpty)
      #expect(firmware.contents() == (try machine.withStore { try $0.contents() }))
    }
  }

  @Test func `the outcome of a number below the highest is not taken for that of the highest`() throws {
    machine.actuator.fails = true
    #expect(try ask(1, 9).status == .internal)
    machine.actuator.fails = false
    #expect(try ask(1, 8).status == .accepted)
    for other in [machine, try TestMachine(firmware.open(), of: firmware)] {
      let again = try ask(1, 9, on: other)
      #expect(again.status == .internal && again.notice?.highestRequestNumber == 9)
    }
  }

  @Test func `after a start every record counts as new`() throws {
    try fillNumbers()
    firmware.clock.advance(milliseconds: 3_600_000)
    let other = try TestMachine(firmware.open(), of: firmware)
    #expect(try ask(64, on: other).status == .busy)
    firmware.clock.advance(milliseconds: 60_999)
    #expect(try ask(64, on: other).status == .busy)
    firmware.clock.advance(milliseconds: 1)
    #expect(try ask(64, on: other).status == .accepted)
  }

  @Test func `a token that has expired by the clock floor makes room for the numbers of another`() throws {
    for id: UInt8 in 0..<64 {
      let prover = try numbered(id, expires: testTime + (id == 40 ? 100 : 1000))
      #expect(try machine.round(prover, number: 7).status == .accepted)
    }
    #expect(try ask(64).status == .busy)
    let later = try firmware.prover(from: 1) { ($0.issuedAt, $0.tokenID) = (testTime + 100, TokenID(filledWith: 99)) }
    #expect(try machine.status(later) == .accepted)
    #expect(try ask(64).status == .accepted)
    #expect(try ask(65).status == .busy)
    #expect(try knows(39))
    #expect(try knows(41))
  }

  @Test func `times of records never seem younger, however long the device runs`() {
    var times = RequestTimes()
    times.advance(to: 5_000)
    times.note(0)
    var seconds: UInt64 = 0
    // The last two steps end where 16 bits would have counted half a minute, without a limit and with one.
    for step: UInt64 in [61, 16_000, 16_384, 40_000, 65_536, 1_000_000, 10, 41_687, 49_182] {
      seconds += step
      times.advance(to: 5_000 + 1000 * seconds)
      for place in 1..<64 { times.note(place) }
      #expect(times.oldest == 0, "after \(seconds) s")
    }
    times.note(0)
    #expect(times.oldest == nil)
  }

  @Test func `eight tokens are remembered, the oldest goes first`() throws {
    let provers = try (0..<9 as Range<UInt8>).map { id in try firmware.prover { $0.tokenID = TokenID(filledWith: id) } }
    for prover in provers { #expect(try machine.status(prover) == .accepted) }
    // One that comes whole again takes no other's place.
    for _ in 0..<8 { #expect(try machine.status(provers[8]) == .accepted) }
    #expect(try machine.status(provers[0], flaws: .asReference) == .tokenUnknown)
    for prover in provers[1...] { #expect(try machine.status(prover, flaws: .asReference) == .accepted) }
    let narrow = try firmware.prover { ($0.tokenID, $0.commands) = (TokenID(filledWith: 0x70), ["status"]) }
    #expect(try machine.status(narrow, "status") == .accepted)
    #expect(try machine.status(narrow, "unlock", flaws: .asReference) == .commandRefused)
    let other = try TestMachine(firmware.open(), of: firmware)
    #expect(try other.status(provers[8], flaws: .asReference) == .tokenUnknown)
  }

  @Test func `sixteen users fit; one more is refused by the device, and a known one can be replaced`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      for index in 0..<16 {
        try store.add(BoundedText("user \(index)")!, otp: hotpMethod, seal: counterSealMethod, secret: usersSecret)
      }
    }
    for (user, isTaken) in [("one more", false), ("user 3", true)] {
      let code = try machine.withStore { (store: inout TestStore) throws in
        try store.issue(.activation, to: BoundedText(user)!, otp: hotpMethod, seed: 5)
      }
      var visitor = TestVisitor()
      let took = try visitor.use(code, for: .activation, challenge: machine.challenge()) { machine.respond($0) }
      #expect(took == isTaken, "\(user)")
    }
    #expect(try TestMachine(firmware.open(), of: firmware).status(firmware.prover()) == .accepted)
  }

  @Test func `a seventeenth verifying key is denied, and costs nobody else anything`() throws {
    var store = try firmware.open()
    for index in 0..<17 {
      let keyID = try TestIssuer().keyID()
      var isRecorded = true
      do {
        try store.record { (store: inout TestStore) throws(EncodingFault) in
          try store.draftGeneration(3, of: keyID)
        }
      } catch { isRecorded = false }
      #expect(isRecorded == (index < 16))
    }
    let isFailed = store.isFailed
    #expect(!isFailed)
    #expect(firmware.contents() == (try store.contents()))
  }

  @Test func `a store that failed answers nothing any more, until the device starts again`() throws {
    let machine = try TestMachine(firmware.open(wordCount: 3), of: firmware)
    #expect(try machine.round(firmware.prover()).status == .internal)
    #expect(throws: DeviceFault.store) { try machine.challenge() }
    #expect(machine.actuator.performed.isEmpty)
    #expect(try TestMachine(firmware.open(), of: firmware).status(firmware.prover()) == .accepted)
  }

  @Test func `a store whose journal could not move answers nothing any more, until the device starts again`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      while store.journal.room >= TestStore.Draft.capacity { try store.note(.started(bootCount: 1), realClock: nil) }
    }
    let before = firmware.contents()
    // Enough for some of the entries that stay, and not for all.
    let failing = try TestMachine(firmware.open(wordCount: 100), of: firmware)
    #expect(try failing.status(firmware.prover()) == .internal)
    #expect(throws: DeviceFault.store) { try failing.challenge() }
    #expect(failing.actuator.performed.isEmpty)
    #expect(firmware.contents() == before)
    #expect(try TestMachine(firmware.open(), of: firmware).status(firmware.prover()) == .accepted)
  }

  @Test func `an array in flash has at most eleven elements`() {
    func isSkipped(count: Int) -> Bool {
      var bytes: [UInt8] = []
      bytes.appendCBOR(array: count)
      for _ in 0..<count { bytes.appendCBORNull() }
      var reader = CBORReader(bytes.span)
      do throws(EncodingFault) { try reader.skip() } catch { return false }
      return reader.position == bytes.count
    }
    #expect(isSkipped(count: 11) && !isSkipped(count: 12))
  }

  @Test func `the index has a place for all that the limits allow`() {
    let index = StoreIndex()
    #expect(index.kept.count == Limit.kept.microcontroller)
    #expect(index.users.count == Limit.users.microcontroller)
    #expect(index.codes.count == Limit.ownerCodes.microcontroller)
    #expect(index.generations.count >= Limit.issuers.microcontroller)
    #expect((index.requests.count, index.outcomes.count) == (RequestTimes.capacity, RequestTimes.capacity))
    #expect(TokenSlots.capacity == Limit.rememberedTokens.microcontroller)
  }
}
