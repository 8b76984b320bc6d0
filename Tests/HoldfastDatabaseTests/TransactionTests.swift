import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

@Suite struct TransactionTests {
  @Test(arguments: Engine.available)
  func `a body that throws leaves nothing`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    #expect(throws: SQLFault.newerVersion) {
      try database.transaction { session throws(SQLFault) in
        try session.run("INSERT INTO counters VALUES ('a', 0)")
        throw .newerVersion
      }
    }
    #expect(try database.counterCount() == 0)
  }

  @Test(arguments: Engine.available)
  func `a body that ignores a failed statement leaves nothing, and no later statement runs`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    #expect(throws: SQLFault.constraint) {
      try database.transaction { session throws(SQLFault) in
        try session.run("INSERT INTO counters VALUES ('a', 0)")
        let first = fault { () throws(SQLFault) in _ = try session.run("INSERT INTO counters VALUES ('a', 0)") }
        let second = fault { () throws(SQLFault) in _ = try session.run("SELECT 1") }
        #expect(first == .constraint && second == .constraint)
      }
    }
    #expect(try database.counterCount() == 0)
    try database.addCounter()
  }

  @Test(arguments: Engine.available)
  func `statements run in the order in which they were sent, whichever answer is read first`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.transaction { session throws(SQLFault) in
      try session.send("INSERT INTO counters VALUES ('a', 1)", values: [])
      let changed = try session.send("UPDATE counters SET count = count + $1", values: [.integer(6)])
      let seven = try session.send("SELECT count FROM counters", values: [])
      try session.send("UPDATE counters SET count = 8", values: [])
      let eight = try session.send("SELECT count FROM counters", values: [])
      #expect(try eight.read().rows.first?.integer(0) == 8)
      #expect(try seven.read().rows.first?.integer(0) == 7)
      #expect(try changed.read().changedRowCount == 1)
      try session.send("UPDATE counters SET count = 9", values: [])
    }
    #expect(try database.counter() == 9)
  }

  @Test(arguments: Engine.available)
  func `a statement that fails among others leaves nothing half done, and the connection can be used`(
    engine: Engine
  ) throws {
    let database = try TestPlace(engine).open(connectionCount: 1)
    for isRead in [false, true] {
      for name in ["a", "b"] {
        let fault = fault { () throws(SQLFault) in
          try database.transaction { session throws(SQLFault) in
            try session.send("INSERT INTO counters VALUES ($1, 0)", values: [.text(name)])
            try session.send("INSERT INTO counters VALUES ($1, -1)", values: [.text("c")])
            let answer = try session.send("UPDATE counters SET count = 5 WHERE name = $1", values: [.text(name)])
            if isRead { _ = try answer.read() }
          }
        }
        #expect(fault == .constraint)
      }
    }
    #expect(try database.counterCount() == 0)
    try database.transaction { session throws(SQLFault) in
      try session.send("INSERT INTO counters VALUES ('a', 0)", values: [])
      try session.send("UPDATE counters SET count = 5 WHERE name = $1", values: [.text("a")])
    }
    #expect(try database.counter() == 5)
  }

  @Test(arguments: Engine.available)
  func `the answer to a statement is of no use after its transaction`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    var kept: SQLAnswer?
    #expect(throws: SQLFault.newerVersion) {
      try database.transaction { session throws(SQLFault) in
        try session.run("INSERT INTO counters VALUES ('a', 0)")
        kept = try session.send("DELETE FROM counters", values: [])
        throw .newerVersion
      }
    }
    if engine == .postgreSQL { #expect(throws: SQLFault.misuse) { try kept?.read() } }
    #expect(try database.counterCount() == 0)
    try database.addCounter()
    #expect(try database.counterCount() == 1)
  }

  @Test(arguments: Engine.available)
  func `a fault of the body itself is thrown once, whatever it is`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    for fault in [SQLFault.conflict, .unavailable, .uncertain, .other(code: "x")] {
      var runCount = 0
      #expect(throws: fault) {
        try database.transaction { session throws(SQLFault) in
          runCount += 1
          try session.run("INSERT INTO counters VALUES ('a', 0)")
          throw fault
        }
      }
      #expect(runCount == 1)
    }
    #expect(try database.counterCount() == 0)
  }

  @Test(arguments: Engine.available)
  func `a session is of no use after its transaction`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    var kept: (any SQLSession)?
    try database.transaction { session throws(SQLFault) in kept = session }
    #expect(throws: SQLFault.misuse) { try kept?.run("INSERT INTO counters VALUES ('a', 0)") }
    try database.read { session throws(SQLFault) in kept = session }
    #expect(throws: SQLFault.misuse) { try kept?.run("SELECT 1") }
    #expect(try database.counterCount() == 0)
  }

  @Test(arguments: Engine.available)
  func `a read cannot write`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    #expect(throws: SQLFault.readOnly) {
      try database.read { session throws(SQLFault) in _ = try session.run("INSERT INTO counters VALUES ('a', 0)") }
    }
    #expect(try database.counterCount() == 0)
  }

  @Test(arguments: Engine.available)
  func `a read sees one state, even if others write meanwhile`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.addCounter("a")
    try database.read { session throws(SQLFault) in
      #expect(try session.row("SELECT count(*) FROM counters")?.integer(0) == 1)
      try database.addCounter("b")
      #expect(try session.row("SELECT count(*) FROM counters")?.integer(0) == 1)
    }
    #expect(try database.counterCount() == 2)
  }

  @Test(arguments: Engine.available)
  func `threads that add to one row lose nothing`(engine: Engine) throws {
    let place = try TestPlace(engine)
    let database = try place.open()
    let other = try place.open()
    try database.addCounter()
    let faults = try onThreads(12) { number throws(SQLFault) in
      for _ in 0..<25 { try (number % 3 == 0 ? other : database).increment() }
    }
    #expect(faults == [])
    #expect(try database.counter() == 300)
  }

  @Test func `the lock of another process makes SQLite busy`() throws {
    var limits = SQLLimits.test
    limits.connectionMilliseconds = 1
    let place = try TestPlace(.sqlite)
    let database = try place.open()
    let other = try place.open(limits: limits)
    try database.transaction { session throws(SQLFault) in
      try session.run("INSERT INTO counters VALUES ('a', 0)")
      let fault = fault { () throws(SQLFault) in try other.addCounter("b") }
      #expect(fault == .busy)
    }
    try other.addCounter("b")
    #expect(try database.counterCount() == 2)
  }

  @Test(arguments: Engine.available)
  func `a thread that waits too long for a free connection is told that the database is busy`(engine: Engine) throws {
    var limits = SQLLimits.test
    limits.connectionMilliseconds = 1
    let place = try TestPlace(engine)
    let database = try place.open(connectionCount: 1, limits: limits)
    try database.transaction { session throws(SQLFault) in
      #expect(throws: SQLFault.busy) { try database.addCounter("b") }
      try session.run("INSERT INTO counters VALUES ('a', 0)")
    }
    try database.read { session throws(SQLFault) in
      let fault = fault { () throws(SQLFault) in try database.check() }
      #expect(fault == .busy)
    }
    try database.check()
    #expect(try database.counterCount() == 1)
  }
}
