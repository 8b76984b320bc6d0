import Glibc
import TestSupport
import Testing

import HoldfastStorage

@Suite struct DatabaseOpeningTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(
    _ name: String = "db", applicationID: Int32 = testApplicationID, schema: [StaticString] = testSchema,
    creation: Database.Creation = .ifMissing
  ) throws(DatabaseError) -> Database {
    try Database(
      path: folder.file(name), applicationID: applicationID, schema: schema, creation: creation,
      busyTimeoutMilliseconds: 0)
  }

  /// A closed database with some pages of rows.
  private func fill() throws {
    let database = try open()
    try database.transaction { () throws(DatabaseError) in
      for index in 0..<200 as Range<Int64> {
        try database.run("INSERT INTO blobs VALUES (?, randomblob(100))", .integer(index))
      }
    }
    try database.close()
  }

  @Test func `what was written is there after reopening`() throws {
    let first = try open()
    #expect(first.isNew)
    try first.run("INSERT INTO counters VALUES ('a', 7)")
    try first.close()
    let second = try open(creation: .never)
    #expect(!second.isNew)
    #expect(try second.oneUnsigned("SELECT count FROM counters WHERE name = ?", .text("a")) == 7)
  }

  @Test func `a write survives without closing`() throws {
    let first = try open()
    try first.run("INSERT INTO counters VALUES ('a', 7)")
    // What a power cut leaves: the files as they are now, under another name.
    try folder.makeFile("copy", try folder.contents("db"))
    try folder.makeFile("copy-wal", try folder.contents("db-wal"))
    #expect(try open("copy").oneUnsigned("SELECT count FROM counters") == 7)
  }

  @Test func `all files are for the owner alone whatever the umask is`() throws {
    let previous = umask(0)
    defer { umask(previous) }
    let database = try open()
    try database.run("INSERT INTO counters VALUES ('a', 7)")
    #expect(try folder.names() == ["db", "db-shm", "db-wal"])
    for name in try folder.names() { #expect(try folder.mode(name) == 0o600) }
  }

  @Test func `an older database is migrated and keeps its rows`() throws {
    let old = try open(schema: [testSchema[0]])
    try old.run("INSERT INTO counters VALUES ('a', 7)")
    try old.close()
    let new = try open()
    #expect(!new.isNew)
    #expect(try new.oneInteger("PRAGMA user_version") == 2)
    #expect(try new.oneInteger("SELECT count FROM counters") == 7)
    try new.run("INSERT INTO blobs VALUES (1, NULL)")
  }

  @Test func `a newer database is refused`() throws {
    try open().close()
    #expect(throws: DatabaseError.newerVersion(found: 2)) { try open(schema: [testSchema[0]]) }
    try open().close()
  }

  @Test func `a migration that fails leaves the old version`() throws {
    try open(schema: [testSchema[0]]).close()
    #expect(throws: DatabaseError.other(code: 1)) {
      try open(schema: [testSchema[0], "CREATE TABLE half (a); CREATE TABLE half (a);"])
    }
    let database = try open(schema: [testSchema[0]])
    #expect(try database.oneInteger("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0)
  }

  @Test func `the database of another application is refused and not changed`() throws {
    try open(applicationID: 1).close()
    let before = try folder.contents("db")
    #expect(throws: DatabaseError.foreign) { try open() }
    #expect(try folder.contents("db") == before)
  }

  @Test func `a database without tables is another application's if it says so, or has a version`() throws {
    let database = try open(applicationID: 1, schema: [])
    #expect(throws: DatabaseError.foreign) { try open() }
    try database.run("PRAGMA application_id = 0")
    try database.run("PRAGMA user_version = 1")
    #expect(throws: DatabaseError.foreign) { try open() }
  }

  @Test func `a database without an application id is refused`() throws {
    let database = try open()
    try database.run("PRAGMA application_id = 0")
    #expect(throws: DatabaseError.foreign) { try open() }
    try database.run("PRAGMA user_version = 0")
    #expect(throws: DatabaseError.foreign) { try open() }
  }

  @Test func `a negative version is corrupt`() throws {
    try open().run("PRAGMA user_version = -1")
    #expect(throws: DatabaseError.corrupt) { try open() }
  }

  @Test func `application id zero is misuse`() {
    #expect(throws: DatabaseError.misuse) { try open(applicationID: 0) }
  }

  @Test func `garbage is corrupt`() throws {
    try folder.makeFile("db", [UInt8](repeating: 0x5a, count: 8192))
    #expect(throws: DatabaseError.corrupt) { try open() }
    #expect(try folder.contents("db") == [UInt8](repeating: 0x5a, count: 8192))
  }

  @Test func `a truncated file is corrupt`() throws {
    try fill()
    try folder.makeFile("db", try folder.contents("db").dropLast(8192 + 100))
    #expect(throws: DatabaseError.corrupt) { try open() }
  }

  @Test(arguments: 1..<4) func `a page overwritten with garbage is corrupt`(page: Int) throws {
    try fill()
    var contents = try folder.contents("db")
    for index in page * 4096..<(page + 1) * 4096 { contents[index] = UInt8(truncatingIfNeeded: index &* 31) }
    try folder.makeFile("db", contents)
    #expect(throws: DatabaseError.corrupt) { try open() }
  }

  @Test func `a missing or emptied file is not created when that is not asked for`() throws {
    #expect(throws: DatabaseError.cannotOpen) { try open(creation: .never) }
    #expect(try folder.names().isEmpty)
    try folder.makeFile("db")
    #expect(throws: DatabaseError.corrupt) { try open(creation: .never) }
    #expect(try open().isNew)
  }

  @Test func `a missing folder, a folder, a symbolic link and a FIFO cannot be opened`() throws {
    #expect(throws: DatabaseError.cannotOpen) { try open("missing/db") }
    #expect(throws: DatabaseError.cannotOpen) { try open("") }
    #expect(throws: DatabaseError.cannotOpen) { try open("d\0b") }
    #expect(try folder.names().isEmpty)
    try open().close()
    #expect(unsafe symlink(folder.file("db"), folder.file("link")) == 0)
    #expect(throws: DatabaseError.cannotOpen) { try open("link") }
    #expect(unsafe mkfifo(folder.file("fifo"), 0o600) == 0)
    #expect(throws: DatabaseError.cannotOpen) { try open("fifo") }
  }

  @Test(arguments: [0o640, 0o604, 0o660, 0o622]) func `a file that others may use is refused`(mode: Int) throws {
    try folder.makeFile("db", [], mode: mode)
    #expect(throws: DatabaseError.permission) { try open() }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func `a file of another user is refused`() throws {
    try folder.makeFile("db")
    #expect(unsafe chown(folder.file("db"), 12345, 12345) == 0)
    #expect(throws: DatabaseError.permission) { try open() }
  }

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func `a file without permissions is refused`() throws {
    try open().close()
    #expect(unsafe chmod(folder.file("db"), 0) == 0)
    #expect(throws: DatabaseError.permission) { try open() }
    #expect(unsafe chmod(folder.file("db"), 0o400) == 0)
    #expect(throws: DatabaseError.readOnly) { try open() }
  }

  @Test(arguments: [":memory:", "file:x?mode=memory", "#", "a b'c"])
  func `a name that SQLite reads in its own way is a file`(name: String) throws {
    try open(name).close()
    #expect(try folder.names() == [name])
    #expect(DatabaseOpening.literalPath(name) == "./" + name)
  }

  @Test func `of eight connections that open a new file at once one makes it and the others wait`() async throws {
    // Who would not wait is seldom caught at it: hence so often.
    for _ in 0..<20 {
      let folder = try TemporaryFolder()
      let made = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 {
          group.addTask { try openTestDatabase(in: folder, busyTimeoutMilliseconds: 60_000).isNew }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(made == 1)
    }
  }

  @Test func `a folder in which nothing may be made is told from one that is not there`() {
    // No user, whatever his rights, makes files there.
    let error = #expect(throws: DatabaseError.self) {
      try Database(path: "/sys/holdfast.sqlite", applicationID: testApplicationID, schema: testSchema)
    }
    #expect(error == .permission || error == .readOnly)
  }

  @Test func `two connections can open a new file one after the other without closing`() throws {
    let first = try open()
    let second = try open()
    #expect(first.isNew && !second.isNew)
  }

  @Test func `opening is busy while another connection migrates`() throws {
    let first = try open(schema: [testSchema[0]])
    try first.transaction { () throws(DatabaseError) in
      #expect(throws: DatabaseError.busy) { try open() }
    }
    try open().close()
  }

  @Test func `what is up to date is opened while another connection writes`() throws {
    let first = try open()
    try first.transaction { () throws(DatabaseError) in
      try first.run("INSERT INTO counters VALUES ('a', 7)")
      #expect(throws: Never.self) { try open(creation: .never).close() }
    }
    #expect(try open().oneUnsigned("SELECT count FROM counters") == 7)
  }
}
