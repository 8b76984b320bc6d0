import HoldfastCore
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

@Suite struct LedgerFailureTests {
  @Test(arguments: ["audit", "uses", "generations", "state"])
  func `a ledger that cannot be written means internal, and the lock does not move`(table: String) throws {
    let device = try TestDevice()
    let prover = try device.prover { ($0.maximumUses, $0.generation) = (3, 4) }
    let before = try device.ledger.summary()
    switch table {
    case "audit":
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, ''); END")
    case "uses":
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON uses BEGIN SELECT raise(ABORT, ''); END")
    case "generations":
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON generations BEGIN SELECT raise(ABORT, ''); END")
    default:
      try device.tamper("CREATE TRIGGER fault BEFORE UPDATE ON state BEGIN SELECT raise(ABORT, ''); END")
    }
    let connection = try device.connect()
    #expect(try connection.round(prover).status == .internal)
    #expect(device.lock.current == .locked)
    #expect(try device.ledger.summary() == before)
    try device.tamper("DROP TRIGGER fault")
    #expect(try connection.round(prover).status == .accepted)
    #expect(device.lock.current == .unlocked)
  }

  @Test func `a ledger that cannot be read ends the connection before there is a challenge`() throws {
    let device = try TestDevice()
    try device.tamper("DELETE FROM state")
    let connection = try device.connect()
    #expect(throws: DeviceFault.store) { try connection.challenge() }
  }

  @Test func `issuers that cannot be read are not trusted`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let prover = try device.prover()
    #expect(try connection.round(prover).status == .accepted)
    try device.tamper("DROP TABLE issuers")
    #expect(try connection.round(prover).status == .tokenInvalid)
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenInvalid)
  }

  @Test func `a ledger waits for another process for as long as is said, and says then that it is busy`() throws {
    let device = try TestDevice()
    try device.ledger.read { tables in #expect(tables.database.busyTimeoutMilliseconds == 5000) }
    #expect(LedgerFault(DatabaseError.busy) == .busy)
    #expect(LedgerFault(DatabaseError.full) == .failed)
  }

  @Test func `a ledger is made once`() throws {
    let device = try TestDevice()
    let path = DeviceFile.ledger.path(in: device.folder.path)
    #expect(throws: DatabaseError.misuse) {
      try Ledger.create(path: path, deviceID: DeviceID(filledWith: 1), realClock: testTime)
    }
    #expect(try device.folder.openLedger().summary() == device.ledger.summary())
  }

  @Test func `an unknown command that policy names is refused before its record`() throws {
    let device = try TestDevice()
    device.policy.commands[BoundedText("open")] = CommandRule(factors: .device)
    let before = try device.ledger.summary()
    #expect(try device.connect().round(try device.prover(), "open", number: 7).status == .commandRefused)
    #expect(device.lock.current == .locked)
    #expect(try device.ledger.summary() == before)
  }
}
