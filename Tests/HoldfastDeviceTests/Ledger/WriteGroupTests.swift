import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastStorage
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// Writes of several threads, which become durable together.
@Suite struct WriteGroupTests {
  @Test func `writes that wait for one another become durable at once, and each has its own result`() throws {
    let device = try TestDevice()
    let before = try commitCount(device)
    let results = try together(device, count: 8) { tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      return number
    }
    #expect(try results.map { try $0.get() } == Array(0..<8))
    #expect(try commitCount(device) == before + 1)
    let audit = try device.ledger.verifyAudit()
    #expect(audit.firstBroken == nil)
    #expect(try device.ledger.summary().audit.count == 2 + 8)
  }

  @Test func `a write that fails, or is not kept, undoes only itself`() throws {
    let device = try TestDevice()
    let results = try together(device, count: 6, isKept: { $0 % 3 != 1 }) {
      tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      if number % 3 == 2 { throw .misuse }
      return number
    }
    for (number, result) in results.enumerated() {
      #expect(try number % 3 == 2 ? result == .failure(.database(.misuse)) : result.get() == number)
    }
    // Those with the numbers 0 and 3.
    #expect(try device.ledger.summary().audit.count == 2 + 2)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `writes of which none is kept write nothing`() throws {
    let device = try TestDevice()
    let before = try commitCount(device)
    let results = try together(device, count: 3, isKept: { _ in false }) {
      tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      return number
    }
    #expect(try results.map { try $0.get() } == [0, 1, 2])
    #expect(try commitCount(device) == before)
  }

  @Test func `if a group cannot become durable, each of its writes fails, and nothing is in memory either`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    // It is checked at the end of the transaction.
    try device.tamper(
      """
      CREATE TABLE fault (boot INTEGER REFERENCES state (id) DEFERRABLE INITIALLY DEFERRED)
      """)
    try device.tamper("CREATE TRIGGER late AFTER INSERT ON audit BEGIN INSERT INTO fault VALUES (99); END")
    let results = try together(device, count: 4, isKept: { $0 != 2 }) { tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      return number
    }
    for result in results { #expect(throws: LedgerError.self) { try result.get() } }
    #expect(try device.ledger.summary() == before)
    try device.tamper("DROP TRIGGER late")
    #expect(try device.connect().round(try device.prover(), "unlock", number: 7).status == .accepted)
  }

  @Test func `nobody sees a write before its group is durable`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    let (ledger, seen) = (device.ledger, Flags())
    _ = try together(device, count: 4) { tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      // In the thread of the write, which has the lock: another connection has to answer.
      let now = try ledger.read { (tables) throws(DatabaseError) in
        try tables.database.oneUnsigned("SELECT audit_count FROM state")
      }
      seen.add(now == before.audit.count)
      return number
    }
    #expect(seen.all == [true, true, true, true])
    #expect(try device.ledger.summary().audit.count == before.audit.count + 4)
  }

  @Test func `the counter of an anchored ledger is raised once for a group`() throws {
    let tpm = FakeTPM()
    let device = try TestDevice(tpm: tpm)
    try device.ledger.record(.stopped, realClock: nil)
    let before = try #require(tpm.count(at: device.folder.counter))
    _ = try together(device, count: 8, isKept: { $0 != 3 }) { tables, state, number throws(DatabaseError) in
      try tables.append(.stopped, time: testTime, to: &state)
      return number
    }
    #expect(tpm.count(at: device.folder.counter) == before + 1)
    try device.reopenLedger()
    #expect(try device.ledger.summary().audit.count == 3 + 7)
  }

  @Test func `requests of many connections are each acted upon once, and their outcomes are kept`() throws {
    let device = try TestDevice()
    device.clock.run()
    let served = try ServedDevice(device)
    let crowd = try Crowd()
    for number in 0..<16 {
      let prover = try device.prover { $0.tokenID = TokenID(filledWith: UInt8(number)) }
      crowd.start { [claims = prover.claims, token = prover.token] in
        let prover = TestProver(claims, token: token)
        let peer = try served.connect()
        for number in 1...8 {
          let flaws: Flaws = number == 1 ? [] : .asReference
          let status = try peer.round(prover, "unlock", number: UInt64(number), flaws: flaws).status
          #expect(status == .accepted)
          let again = try peer.round(prover, "unlock", number: UInt64(number), flaws: .asReference).status
          #expect(again == .accepted)
        }
      }
    }
    crowd.wait()
    try served.stop()
    let audit = try device.ledger.verifyAudit()
    #expect(audit.firstBroken == nil)
    let unlocked = try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.database.oneUnsigned("SELECT count(*) FROM requests WHERE outcome = 0")
    }
    #expect(unlocked == 16)
  }
}

/// Observations of several threads.
private final class Flags: Sendable {
  private let flags = Mutex<[Bool]>([])
  var all: [Bool] { flags.withLock { $0 } }
  func add(_ flag: Bool) { flags.withLock { $0.append(flag) } }
}

/// Runs `body` in as many threads, all of whose writes are in one group: the first one goes on when the others wait for the lock.
private func together(
  _ device: TestDevice, count: Int, isKept: @escaping @Sendable (Int) -> Bool = { _ in true },
  _ body: @escaping @Sendable (borrowing LedgerTables, inout LedgerState, Int) throws(DatabaseError) -> Int
) throws -> [Result<Int, LedgerError>] {
  let ledger = device.ledger
  let results = Mutex([Result<Int, LedgerError>?](repeating: nil, count: count))
  let crowd = try Crowd()
  let order = Atomic(0)
  for _ in 0..<count {
    crowd.start {
      let number = Mutex(0)
      let result = Result { () throws(LedgerError) in
        try ledger.write(isKept: isKept) { (tables, state) throws(DatabaseError) in
          let present = order.add(1, ordering: .sequentiallyConsistent).oldValue
          number.withLock { $0 = present }
          if present == 0 {
            let deadline = Deadline(afterMilliseconds: 60_000)
            while ledger.arrivingCount < count - 1, !deadline.hasPassed { sched_yield() }
          }
          return try body(tables, &state, present)
        }
      }
      results.withLock { results in results[number.withLock { $0 }] = result }
    }
  }
  crowd.wait()
  return results.withLock { $0 }.compactMap { $0 }
}

/// The number of transactions in the write-ahead log: of frames that say how long the database is.
private func commitCount(_ device: TestDevice) throws -> Int {
  let log = try Array(Data(contentsOf: URL(filePath: DeviceFile.ledger.path(in: device.folder.path) + "-wal")))
  let pageByteCount = 4096
  return stride(from: 32, to: log.count, by: 24 + pageByteCount).filter { log[$0 + 4..<$0 + 8] != [0, 0, 0, 0] }.count
}
