import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

@Suite struct MigrationTests {
  @Test(arguments: Engine.available)
  func `a new version of the schema keeps what is there`(engine: Engine) throws {
    let place = try TestPlace(engine)
    try place.open(schema: Array(testSchema.prefix(1))).addCounter()
    let database = try place.open()
    #expect(try database.counter() == 0)
    try database.transaction { session throws(SQLFault) in _ = try session.run("INSERT INTO log VALUES (1, 'one')") }
    #expect(try place.open().counter() == 0)
  }

  @Test(arguments: Engine.available)
  func `a newer schema is refused`(engine: Engine) throws {
    let place = try TestPlace(engine)
    _ = try place.open()
    #expect(throws: SQLFault.newerVersion) { try place.open(schema: Array(testSchema.prefix(1))) }
  }

  @Test(arguments: Engine.available)
  func `a database of another application is refused`(engine: Engine) throws {
    let place = try TestPlace(engine)
    _ = try place.open(applicationID: 1)
    #expect(throws: SQLFault.foreign) { try place.open(applicationID: 2) }
  }

  @Test(arguments: Engine.available)
  func `a script that fails leaves the database as it was`(engine: Engine) throws {
    let place = try TestPlace(engine)
    #expect(throws: SQLFault.self) {
      try place.open(schema: testSchema + ["CREATE TABLE more (a TEXT); CREATE nonsense"])
    }
    _ = try place.open(schema: testSchema + ["CREATE TABLE more (a TEXT);"])
  }

  @Test(arguments: Engine.available)
  func `a database is only created on request`(engine: Engine) throws {
    let place = try TestPlace(engine)
    #expect(throws: SQLFault.missing) { try place.open(creating: false) }
    try place.open().addCounter()
    #expect(try place.open(creating: false).counter() == 0)
  }

  @Test(arguments: Engine.available)
  func `many that start at once create one database`(engine: Engine) throws {
    let place = try TestPlace(engine)
    let faults = try onThreads(6) { number throws(SQLFault) in
      try place.open(connectionCount: 1).addCounter("\(number)")
    }
    #expect(faults == [])
    #expect(try place.open().counterCount() == 6)
  }

  @Test func `wrong arguments are misuse`() throws {
    let place = try TestPlace(.sqlite)
    #expect(throws: SQLFault.misuse) { try place.open(applicationID: 0) }
    #expect(throws: SQLFault.misuse) { try place.open(connectionCount: 0) }
    for url in [
      "host=/tmp", "mysql://a", "postgresql://[a", "postgresql:///a?nonsense=1", "postgresql:///a?host=a,b&port=1,2,3",
    ] {
      #expect(throws: SQLFault.misuse) { try SQLDatabase(.postgreSQL(url: url), applicationID: 1, schema: []) }
    }
  }
}
