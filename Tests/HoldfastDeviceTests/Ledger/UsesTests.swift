import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

@Suite struct UsesTests {
  @Test func `a ledger whose count of kept records is too small is refused, not believed`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let short = try device.prover {
      $0.expires = testTime + 10
      $0.maximumUses = 2
    }
    #expect(try connection.round(short).status == .accepted)
    try device.ledger.moveClockFloor(to: testTime + 10, realClock: nil)
    try device.tamper("UPDATE state SET kept_count = 0")
    #expect(try connection.round(try device.prover()).status == .internal)
  }

  @Test func `as many tokens number their requests as there is room for, until one of them has expired`() throws {
    let device = try TestDevice(limits: LedgerLimits(requestCount: 2))
    let connection = try device.connect()
    func prover(_ number: UInt8, expires seconds: UInt64 = 1000) throws -> TestProver {
      try device.prover { ($0.tokenID, $0.expires) = (TokenID(filledWith: number), testTime + seconds) }
    }
    let first = try prover(1, expires: 10)
    #expect(try connection.round(first, number: 1).status == .accepted)
    #expect(try connection.round(prover(2), number: 1).status == .accepted)
    #expect(try connection.round(prover(3), number: 1).status == .busy)
    #expect(try connection.round(prover(3)).status == .accepted)
    #expect(try connection.round(first, number: 2).status == .accepted)
    try device.ledger.moveClockFloor(to: testTime + 10, realClock: nil)
    #expect(try connection.round(prover(3), number: 1).status == .accepted)
    #expect(try connection.round(prover(4), number: 1).status == .busy)
    // A count that is too small is not believed.
    try device.ledger.moveClockFloor(to: testTime + 1000, realClock: nil)
    try device.tamper("UPDATE state SET request_count = 0")
    #expect(try connection.round(try device.prover { $0.expires = testTime + 2000 }).status == .internal)
  }

  @Test func `only accepted rounds cost a use`() throws {
    let device = try TestDevice()
    let prover = try device.prover { $0.maximumUses = 2 }
    let connection = try device.connect()
    #expect(try connection.round(prover, "open").status == .commandRefused)
    #expect(try connection.round(prover, flaws: .wrongIntegrity).status == .integrityMismatch)
    #expect(try connection.round(prover).status == .accepted)
    #expect(try connection.round(prover).status == .accepted)
    #expect(try connection.round(prover).status == .usesExhausted)
  }

  @Test func `a token encoded anew shares its uses`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.maximumUses = 1 }).status == .accepted)
    #expect(try connection.round(try device.prover { $0.maximumUses = 1 }).status == .usesExhausted)
  }

  @Test func `uses are kept until the latest exp under which the token came`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    let connection = try device.connect()
    func prover(expires: UInt64) throws -> TestProver {
      try device.prover { ($0.maximumUses, $0.expires) = (2, expires) }
    }
    #expect(try connection.round(try prover(expires: testTime + 1000)).status == .accepted)
    #expect(try connection.round(try prover(expires: testTime + 100)).status == .accepted)
    try device.ledger.moveClockFloor(to: testTime + 500, realClock: nil)
    #expect(try connection.round(try prover(expires: testTime + 1000)).status == .usesExhausted)
  }

  @Test func `the same jti of another issuer is another token`() throws {
    let device = try TestDevice()
    let other = try TestIssuer()
    try device.ledger.trust(.signing(other.point), realClock: testTime)
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.maximumUses = 1 }).status == .accepted)
    #expect(try connection.round(try device.prover(from: other) { $0.maximumUses = 1 }).status == .accepted)
  }

  @Test func `eight connections at once get exactly as many uses as there are`() throws {
    let device = try TestDevice()
    let token = try device.prover { $0.maximumUses = 50 }
    let accepted = Atomic(0)
    let exhausted = Atomic(0)
    let gate = try #require(WorkerGate(limit: 8))
    for number in 1...8 {
      let connection = Handed(try device.connect(number: UInt64(number)))
      let prover = Handed(TestProver(token.claims, token: token.token))
      #expect(gate.enter())
      let isStarted = Thread.detach {
        defer { gate.leave() }
        for _ in 0..<10 {
          switch try? connection.value.round(prover.value).status {
          case .accepted: accepted.add(1, ordering: .relaxed)
          case .usesExhausted: exhausted.add(1, ordering: .relaxed)
          default: break
          }
        }
      }
      #expect(isStarted)
    }
    gate.closeAndWait()
    #expect(accepted.load(ordering: .relaxed) == 50)
    #expect(exhausted.load(ordering: .relaxed) == 30)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `uses, floors and the audit log survive a restart`() throws {
    let device = try TestDevice()
    let prover = try device.prover { ($0.maximumUses, $0.generation, $0.issuedAt) = (1, 7, testTime + 9) }
    #expect(try device.connect().round(prover).status == .accepted)
    let before = try device.ledger.summary()
    try device.reopenLedger()
    #expect(try device.ledger.summary() == before)
    #expect(try device.connect().round(prover).status == .usesExhausted)
    #expect(try device.connect().round(try device.prover()).status == .tokenRevoked)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a full store is busy, goes on counting what it counts, and frees what the floor has passed`() throws {
    let device = try TestDevice(limits: LedgerLimits(keptCount: 2))
    let connection = try device.connect()
    func prover(_ number: UInt8, expires: UInt64 = testTime + 100) throws -> TestProver {
      try device.prover {
        $0.maximumUses = 2
        $0.tokenID = TokenID(filledWith: number)
        $0.expires = expires
      }
    }
    #expect(try connection.round(try prover(1)).status == .accepted)
    #expect(try connection.round(try prover(2, expires: testTime + 200)).status == .accepted)
    #expect(try connection.round(try prover(3)).status == .busy)
    #expect(try connection.round(try prover(1)).status == .accepted)
    #expect(try connection.round(try prover(1)).status == .usesExhausted)
    #expect(try connection.round(try device.prover()).status == .accepted)
    // The real clock by itself drops nothing: it may be wrong, and then be set right.
    device.clock.seconds = testTime + 150
    #expect(try connection.round(try prover(4, expires: testTime + 300)).status == .busy)
    #expect(try connection.round(try device.prover { $0.issuedAt = testTime + 100 }).status == .accepted)
    #expect(try connection.round(try prover(4, expires: testTime + 300)).status == .accepted)
    #expect(try device.ledger.summary().keptCount == 2)
  }

  @Test func `a million records are kept, and not one more`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let counted = try device.prover { $0.maximumUses = 2 }
    #expect(try connection.round(counted).status == .accepted)
    try device.tamper(
      """
      WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999999)
      INSERT INTO uses SELECT x'0102030405060708', CAST(printf('%016d', n) AS BLOB), ?, 1 FROM numbers
      """, .unsigned(testTime + 86_400))
    try device.tamper("UPDATE state SET kept_count = 1000000")
    let newcomer = try device.prover { ($0.maximumUses, $0.tokenID) = (2, TokenID(filledWith: 1)) }
    #expect(try connection.round(newcomer).status == .busy)
    #expect(try connection.round(counted).status == .accepted)
    #expect(try connection.round(counted).status == .usesExhausted)
    #expect(try connection.round(try device.prover { $0.tokenID = TokenID(filledWith: 2) }).status == .accepted)
    try device.tamper("UPDATE state SET kept_count = 999999")
    #expect(try connection.round(newcomer).status == .accepted)
    #expect(try device.ledger.summary().keptCount == 1_000_000)
  }

  @Test func `a round drops only so many outdated entries, and the rest later`() throws {
    let device = try TestDevice(limits: LedgerLimits(dropCount: 2))
    let connection = try device.connect()
    for number in 1...5 {
      let prover = try device.prover {
        ($0.maximumUses, $0.expires) = (1, testTime + 10)
        $0.tokenID = TokenID(filledWith: UInt8(number))
      }
      #expect(try connection.round(prover).status == .accepted)
    }
    try device.ledger.moveClockFloor(to: testTime + 10, realClock: nil)
    let kept = try (0..<4).map { _ in
      _ = try connection.round(try device.prover())
      return try device.ledger.summary().keptCount
    }
    #expect(kept == [3, 1, 0, 0])
  }
}

/// Something that one thread makes and another one uses from then on.
struct Handed<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
