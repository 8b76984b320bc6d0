import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// A small device's audit log goes home, and the device keeps what its home does not have, as long as there is room.
@Suite struct FlashStoreHomeTests {
  let firmware: TestFirmware
  let machine: TestMachine<TestStore>
  let courier: TestProver

  init() throws { try self.init(refuses: false) }

  private init(refuses: Bool?) throws {
    firmware = try TestFirmware(issuerCount: 2, homeRefuses: refuses)
    firmware.clock.seconds = nil
    machine = try TestMachine(firmware.open(), of: firmware)
    courier = try firmware.prover()
  }

  private var chain: AuditChain { machine.withStore { $0.audit } }
  private var slot: Int { machine.withStore { $0.journal.slot } }

  /// The chain after each entry that the store has, by number.
  private func chains() throws -> [UInt64: AuditChain] {
    try machine.withStore { store in
      var chains: [UInt64: AuditChain] = [:]
      try store.forEachAuditEntry { _, chain in chains[chain.count] = chain }
      return chains
    }
  }

  private func events() throws -> [AuditEvent] { try machine.withStore { try $0.auditEntries().entries.map(\.event) } }

  /// The number of the last entry that is no longer there.
  private func cut() throws -> UInt64 {
    let (entries, isWhole) = try machine.withStore { try $0.auditEntries() }
    #expect(isWhole)
    return (entries.first?.sequence ?? 1) - 1
  }

  /// The sealed page in an answer, which has to be there.
  private func page(_ answer: [UInt8]??) throws -> [UInt8] {
    let answer = try #require(answer)
    return try #require(answer)
  }

  /// The pages that a courier gets until one reaches the end, each of which begins where the one before ended.
  private func pages() throws -> [AuditPage] {
    var pages: [AuditPage] = []
    while pages.count < 200 {
      let sealed = try page(machine.page(by: courier))
      #expect((sealed.count - 32) % 256 == 0 && sealed.count <= 1024 + 32)
      let page = try firmware.open(page: sealed)
      if let last = pages.last { #expect(page.base.count == last.base.count + UInt64(last.entries.count)) }
      pages.append(page)
      if page.base.count + UInt64(page.entries.count) == page.end.count { return pages }
    }
    return pages
  }

  /// Accepts rounds until the journal has moved that often.
  private func move(times: Int) throws {
    for _ in 0..<times {
      let before = slot
      while slot == before { try #require(try machine.status(courier, "status") == .accepted) }
    }
  }

  /// Adds an entry with that many bytes more than the shortest. Returns the room that it took.
  @discardableResult private func note(_ more: Int = 0) throws -> Int {
    let name = try #require(BoundedText<32>(String(repeating: "x", count: 1 + more)))
    return try machine.withStore { (store: inout TestStore) throws in
      let before = store.journal.room
      try store.note(.userRemoved(name), realClock: nil)
      return before - store.journal.room
    }
  }

  /// Adds entries until `rest`, from which each takes its room, is 0.
  private func fill(_ rest: () -> Int) throws {
    var shortest = try note()
    while rest() >= 2 * shortest { shortest = try note() }
    if rest() > 0 { try note(rest() - shortest) }
    try #require(rest() == 0)
  }

  @Test func `pages have every entry once, lead to the head of the chain, and have whole units`() throws {
    for _ in 0..<40 { #expect(try machine.status(courier, "status") == .accepted) }
    let pages = try pages()
    #expect(pages.count > 2)
    var cryptography = OpenSSLCryptography()
    var head = AuditChain()
    for page in pages {
      #expect(page.cut == 0 && page.base == head)
      #expect(page.entries.count <= 23)
      for entry in page.entries { try head.advance(over: entry.span, using: &cryptography) }
    }
    #expect(head == pages.last?.end && head == chain)
    // The home has acknowledged nothing, so the next page begins anew.
    let again = try page(machine.page(by: courier))
    #expect(try firmware.open(page: again).base == AuditChain())
  }

  @Test func `a page has at most 23 entries, however small they are`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      for _ in 0..<40 { try store.note(.started(bootCount: 1), realClock: nil) }
    }
    #expect(try pages().first?.entries.count == 23)
  }

  @Test func `two pages of the same entries have different salts, and each byte of one counts`() throws {
    let first = try page(machine.page(from: 1, by: courier))
    let second = try page(machine.page(from: 1, by: courier))
    #expect(first[..<16] != second[..<16])
    for index in stride(from: 0, to: first.count, by: 17) {
      var changed = first
      changed[index] ^= 1
      #expect(throws: CryptographyFailure.self) { try firmware.open(page: changed) }
    }
  }

  @Test func `an accepted round permits one page, and there is none beyond the end or before the beginning`() throws {
    _ = try machine.challenge()
    #expect(machine.pageAgain() == .none)
    #expect(try machine.page(from: 1, by: courier) != .some(nil))
    // To ask once more is no forgery, and does not end the permission.
    for _ in 0..<2 { #expect(machine.pageAgain(from: 1) == .some(nil)) }
    #expect(try machine.page(from: chain.count + 2, by: courier) == .some(nil))
    try move(times: 1)
    let end = chain
    #expect(try machine.acknowledge(firmware.receipt(end), by: courier) == .taken)
    try move(times: 1)
    let cut = try cut()
    #expect(cut > 0)
    #expect(try machine.page(from: cut, by: courier) == .some(nil))
    let first = try page(machine.page(from: cut + 1, by: courier))
    let page = try firmware.open(page: first)
    #expect(page.cut == cut && page.base.count == cut)
  }

  @Test func `without a home or its key for agreement there is no page, and no receipt counts`() throws {
    let other = try FlashStoreHomeTests(refuses: nil)
    #expect(try other.machine.page(by: other.courier) == .some(nil))
    #expect(try other.machine.acknowledge(other.firmware.receipt(other.chain), by: other.courier) == .refused)
    let silent = try TestFirmware(homeRefuses: false)
    var provision = try silent.provision()
    provision.home = try silent.home(announced: false)
    var flash = silent.flash.powered()
    var cryptography = OpenSSLCryptography()
    try provision.write(into: &flash, using: &cryptography)
    #expect(try TestMachine(silent.open(), of: silent).page(by: silent.prover()) == .some(nil))
    let number = try other.machine.round(other.courier, "status", number: 1)
    #expect(number.notice?.hasAuditPage == false)
    #expect(try machine.round(courier, "status", number: 1).notice?.hasAuditPage == true)
    #expect(try machine.round(courier, "status", number: 1).notice?.hasAuditPage == false, "a repetition")
    #expect(try machine.round(courier, "status").notice?.hasAuditPage == false, "no number")
  }

  @Test func `a receipt has the result that the rules say, and only a right one acknowledges`() throws {
    for _ in 0..<5 { #expect(try machine.status(courier, "status") == .accepted) }
    let right = chain
    let wrong = AuditChain(count: right.count, head: Digest())
    let beyond = AuditChain(count: right.count + 100, head: right.head)
    let stranger = try TestIssuer()
    var forged = try firmware.receipt(right)
    forged[forged.count - 1] ^= 1
    let cases: [(BulletinResult, [UInt8])] = [
      (.refused, [0]), (.refused, try firmware.receipt(right, by: stranger)),
      (.refused, try firmware.receipt(right, by: firmware.issuers[1])),
      (.notAddressed, try firmware.receipt(right, for: DeviceID(filledWith: 1))), (.refused, forged),
      (.refused, try firmware.receipt(wrong)), (.refused, try firmware.receipt(beyond)),
    ]
    for (index, (result, receipt)) in cases.enumerated() {
      #expect(try machine.acknowledge(receipt, by: courier) == result, "case \(index)")
      #expect(machine.withStore { $0.acknowledged } == 0, "case \(index)")
    }
    let refusals = try events().filter { if case .receiptRefused = $0 { true } else { false } }
    let home = try firmware.issuers[0].keyID()
    #expect(
      refusals == [.receiptRefused(home, count: wrong.count), .receiptRefused(home, count: beyond.count)])
    #expect(try machine.acknowledge(firmware.receipt(right), by: courier) == .taken)
    #expect(machine.acknowledgeAgain(try firmware.receipt(chain)) == .busy)
    #expect(machine.acknowledgeAgain(try firmware.receipt(right)) == .known)
    #expect(machine.withStore { $0.acknowledged } == right.count)
    #expect(firmware.contents()?.acknowledged == right.count)
    let earlier = try #require(try chains()[right.count - 1])
    #expect(try machine.acknowledge(firmware.receipt(earlier), by: courier) == .known)
    // The next page begins behind what the home has.
    let page = try firmware.open(page: try page(machine.page(by: courier)))
    #expect(page.base == right)
  }

  @Test func `a wrong signature ends the permission`() throws {
    #expect(try machine.status(courier, "status") == .accepted)
    var forged = try firmware.receipt(chain)
    forged[forged.count - 1] ^= 1
    #expect(try machine.acknowledge(forged, by: courier) == .refused)
    #expect(machine.acknowledgeAgain(try firmware.receipt(chain)) == nil)
    #expect(machine.pageAgain() == .none)
  }

  @Test func `acknowledged entries go first when the journal moves, and all others stay`() throws {
    for _ in 0..<30 { #expect(try machine.status(courier, "status") == .accepted) }
    let acknowledged = chain
    #expect(try machine.acknowledge(firmware.receipt(acknowledged), by: courier) == .taken)
    for _ in 0..<30 { #expect(try machine.status(courier, "status") == .accepted) }
    let before = try chains()
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    #expect(try cut() == acknowledged.count)
    #expect(try chains() == before.filter { $0.key > acknowledged.count })
    #expect(firmware.contents()?.acknowledged == acknowledged.count)
    // Of a log that its home has, the newest stay for the owner.
    #expect(try machine.acknowledge(firmware.receipt(chain), by: courier) == .taken)
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    #expect(try machine.withStore { try $0.auditEntries().entries.count } == 16)
  }

  @Test func `the bytes that entries take are counted as the journal moves them`() throws {
    func check() throws {
      let count = machine.withStore { $0.auditByteCount }
      #expect(try firmware.open().auditByteCount == count)
      try machine.withStore { (store: inout TestStore) throws in try store.compact() }
      #expect(machine.withStore { $0.auditByteCount } == count)
    }
    for _ in 0..<20 { #expect(try machine.status(courier, "status") == .accepted) }
    try check()
    let half = try #require(try chains()[10])
    #expect(try machine.acknowledge(firmware.receipt(half), by: courier) == .taken)
    try check()
    #expect(try machine.acknowledge(firmware.receipt(chain), by: courier) == .taken)
    // The courier's own round is the only one that is left. The receipt has no entry.
    #expect((1...200).contains(machine.withStore { $0.auditByteCount }))
    try check()
  }

  @Test func `a receipt that moves the journal counts the bytes that are left after the move`() throws {
    /// Fills the journal until it has less room than `byteCount`, and returns the chain.
    func fill(leaving byteCount: Int) throws -> AuditChain {
      try machine.withStore { (store: inout TestStore) throws in
        while store.journal.room >= byteCount { try store.note(.started(bootCount: 1), realClock: nil) }
        return store.audit
      }
    }
    let (home, acknowledged) = (try firmware.issuers[0].keyID(), try fill(leaving: 1200))
    _ = try fill(leaving: 1024)
    let before = slot
    let result = try machine.withStore { (store: inout TestStore) throws in
      try store.acknowledgeAudit(acknowledged, by: home, realClock: nil)
    }
    #expect(result == .taken && slot != before)
    let byteCount = machine.withStore { $0.auditByteCount }
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    #expect(machine.withStore { $0.auditByteCount } == byteCount)
  }

  @Test func `at rest, a journal moves once it has less room than 4096 bytes`() throws {
    func hasMoved() -> Bool {
      let before = slot
      machine.withStore { $0.rest(recordsTotals: false, realClock: nil) }
      return slot != before
    }
    try fill { machine.withStore { $0.journal.room } - 4096 }
    #expect(!hasMoved())
    try note()
    #expect(hasMoved())
  }

  @Test func `an entry counts with the whole words that its transaction takes`() throws {
    for length in 1...8 {
      let name = try #require(BoundedText<32>(String(repeating: "x", count: length)))
      let before = machine.withStore { ($0.auditByteCount, $0.journal.end) }
      try machine.withStore { (store: inout TestStore) throws in try store.note(.userRemoved(name), realClock: nil) }
      let after = machine.withStore { ($0.auditByteCount, $0.journal.end) }
      #expect(after.0 - before.0 == after.1 - before.1, "\(length)")
    }
  }

  @Test func `a log that may lose nothing is full for commands once a sixteenth of its room is left`() throws {
    let strict = try FlashStoreHomeTests(refuses: true)
    let limit = TestStore.auditByteLimit - TestStore.auditByteLimit / 16
    for (count, status) in [(limit - 1, .accepted), (limit, .commandRefused)] as [(Int, Status)] {
      strict.machine.withStore { $0.auditByteCount = count }
      #expect(try strict.machine.status(strict.courier) == status)
    }
  }

  @Test(arguments: [0, testTime])
  func `a store that was just created is the one that a start finds`(floor: UInt64) throws {
    let flash = TestFlash()
    var created = try TestStore.create(in: flash.powered(), clockFloor: floor, using: OpenSSLCryptography())
    var opened = try TestStore.open(flash.powered(), using: OpenSSLCryptography())
    let (before, after) = (try created.contents(), try opened.contents())
    #expect(before == after && before.acknowledged == 0)
    let times = (try created.knownTime(), try opened.knownTime())
    #expect(times == (floor, floor))
  }

  @Test func `a store's time is the later one of its floor and the clock, and 0 without both`() throws {
    for (floor, clock, time) in [(0, nil, 0), (0, 5, 5), (7, nil, 7), (7, 5, 7)] as [(UInt64, UInt64?, UInt64)] {
      let store = try TestStore.create(in: TestFlash().powered(), clockFloor: floor, using: OpenSSLCryptography())
      let found = store.time(clock)
      #expect(found == time)
    }
  }

  @Test func `a full log drops the oldest entries behind one that counts them`() throws {
    try move(times: 5)
    let cut = try cut()
    #expect(cut > 0)
    #expect(machine.withStore { $0.auditByteCount } > TestStore.auditByteLimit / 2)
    var lost: UInt64 = 0
    // The entries that counted the earlier losses were sent home before they were lost themselves, or are lost with others.
    let entries = try machine.withStore { try $0.auditEntries().entries }
    for entry in entries { if case .entriesLost(let count) = entry.event { lost += count } }
    #expect(lost > 0 && lost <= cut)
    // With every page fetched and acknowledged, nothing is lost any more.
    let known = chain
    #expect(try machine.acknowledge(firmware.receipt(known), by: courier) == .taken)
    for _ in 0..<50 { #expect(try machine.status(courier, "status") == .accepted) }
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    #expect(try self.cut() == known.count)
    let losses = try events().filter { if case .entriesLost = $0 { true } else { false } }
    #expect(losses.isEmpty)
    #expect(try pages().first?.base == known)
  }

  @Test func `a log that takes just the bytes that it may loses nothing when the journal moves`() throws {
    func move() throws { try machine.withStore { (store: inout TestStore) throws in try store.compact() } }
    try fill { TestStore.auditByteLimit - machine.withStore { $0.auditByteCount } }
    try move()
    #expect(try cut() == 0)
    try note()
    try move()
    #expect(try cut() > 0)
  }

  @Test func `the first loss is counted exactly`() throws {
    var moves = 0
    #expect(try machine.status(courier, "status") == .accepted)
    while try cut() == 0, moves < 10 {
      try move(times: 1)
      moves += 1
    }
    let losses = try events().compactMap { if case .entriesLost(let count) = $0 { count } else { nil } }
    #expect(losses == [try cut()])
  }

  @Test func `a log that may lose nothing refuses commands until its home has it`() throws {
    let strict = try FlashStoreHomeTests(refuses: true)
    var number: UInt64 = 0
    func ask() throws -> TestVerdict {
      number += 1
      return try strict.machine.round(strict.courier, "unlock", number: number)
    }
    var verdict = try ask()
    while verdict.status == .accepted, number < 5000 { verdict = try ask() }
    #expect(verdict.status == .commandRefused)
    #expect(verdict.result == "auditLogFull" && verdict.notice?.hasAuditPage == true)
    #expect(try strict.cut() == 0)
    let acted = strict.machine.actuator.performed.count
    // Other entries still have their room, also when the journal moves.
    for _ in 0..<8 {
      try strict.machine.withStore { (store: inout TestStore) throws in
        try store.note(.started(bootCount: 1), realClock: nil)
      }
    }
    try strict.machine.withStore { (store: inout TestStore) throws in try store.compact() }
    #expect(try strict.cut() == 0)
    let (end, count) = (strict.chain, number)
    // A refusal for this reason permits a page and a receipt.
    #expect(try ask().status == .commandRefused)
    _ = try strict.machine.challenge()
    let sealed = try page(strict.machine.pageAgain())
    #expect(try strict.firmware.open(page: sealed).base == AuditChain())
    #expect(strict.machine.acknowledgeAgain(try strict.firmware.receipt(end)) == .taken)
    #expect(strict.machine.actuator.performed.count == acted)
    #expect(try ask().status == .accepted)
    #expect(number == count + 2)
  }

  @Test func `no prover, no stranger and no start pushes anything out of a log that may lose nothing`() throws {
    let strict = try FlashStoreHomeTests(refuses: true)
    while try strict.machine.status(strict.courier) == .accepted {}
    let full = strict.chain
    let wrong = try strict.firmware.receipt(AuditChain(count: full.count, head: Digest()))
    for id: UInt8 in 0..<4 {
      let prover = try strict.firmware.prover { $0.tokenID = TokenID(filledWith: id) }
      for nonce in 8 * id..<8 * id + 8 {
        #expect(try strict.machine.compatibility(prover, nonce: nonce) == .commandRefused)
        #expect(try strict.machine.status(strict.courier) == .commandRefused)
        _ = try strict.machine.challenge()
        #expect(strict.machine.acknowledgeAgain(wrong) == .refused)
      }
    }
    let later = try strict.firmware.prover(from: 1) { $0.issuedAt = testTime + 1 }
    #expect(try strict.machine.status(later) == .commandRefused)
    func rest() throws {
      try strict.machine.withStore { (store: inout TestStore) throws in
        store.rest(recordsTotals: true, realClock: nil)
        try store.compact()
      }
    }
    try strict.machine.withStore { (store: inout TestStore) throws in
      for _ in 0..<100 { _ = try store.start(realClock: nil) }
      store.countUnauthenticated(.malformed)
    }
    try rest()
    #expect(strict.chain == full)
    #expect(try strict.cut() == 0)
    // The totals are written once there is room again.
    #expect(try strict.machine.status(strict.courier) == .commandRefused)
    _ = try strict.machine.challenge()
    #expect(strict.machine.acknowledgeAgain(try strict.firmware.receipt(full)) == .taken)
    try rest()
    var denied: UInt64 = 0
    for event in try strict.events() { if case .denied(let rounds) = event { denied += rounds.count } }
    #expect(denied == 1 + 32 + 32 + 1 + 1)
    #expect(try strict.events().contains { if case .unproved = $0 { true } else { false } })
  }

  @Test func `a journal whose move has failed gives no page of the slot that is not in force`() throws {
    while machine.withStore({ $0.journal.room >= 4096 }) {
      try #require(try machine.status(courier, "status") == .accepted)
    }
    // Enough for the round, and for some of the entries that stay.
    let failing = try TestMachine(firmware.open(wordCount: 2000), of: firmware)
    #expect(try failing.status(courier, "status") == .accepted)
    _ = try failing.challenge()
    failing.withStore { $0.rest(recordsTotals: false, realClock: nil) }
    #expect(failing.withStore { $0.isFailed })
    #expect(failing.pageAgain() == .none)
  }
}
