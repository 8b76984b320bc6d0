import Glibc
import HoldfastLinux
import Synchronization
import TestPostgreSQL
import TestSupport

import HoldfastDatabase

let testApplicationID: Int32 = 0x486f_6c65
let testSchema: [StaticString] = [
  """
  CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0)) STRICT, WITHOUT ROWID;
  CREATE TABLE entries (id IDENTITY, body BLOB, note TEXT, counter TEXT REFERENCES counters) STRICT;
  """,
  """
  CREATE TABLE log (number INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
  APPEND ONLY log;
  """,
]

/// The databases on which the same tests run.
enum Engine: String, CaseIterable, Sendable {
  case sqlite
  case postgreSQL

  /// PostgreSQL only where it is installed; another test is shown as skipped then.
  static let available = allCases.filter { $0 == .sqlite || PostgreSQLServer.isInstalled }
}

/// A place for one database, which is empty at first.
struct TestPlace: Sendable {
  let location: DatabaseLocation

  init(_ engine: Engine) throws {
    switch engine {
    case .sqlite:
      let folder = try TemporaryFolder()
      keptFolders.change { $0.append(folder) }
      removal
      location = .sqlite(path: folder.file("db"))
    case .postgreSQL:
      let server = try sharedServer.get()
      location = .postgreSQL(url: server.url(try server.makeDatabase()))
    }
  }

  func open(
    applicationID: Int32 = testApplicationID, schema: [StaticString] = testSchema, connectionCount: Int = 4,
    creating: Bool = true, limits: SQLLimits = .test
  ) throws(SQLFault) -> SQLDatabase {
    try SQLDatabase(
      location, applicationID: applicationID, schema: schema, connectionCount: connectionCount, creating: creating,
      limits: limits)
  }
}

/// The folders of databases, which outlive their tests: a database opens files when it needs a further connection.
private let keptFolders = Synchronized<[TemporaryFolder]>([])
private let removal: Void = { _ = atexit { keptFolders.change { $0 = [] } } }()

extension SQLLimits {
  /// Limits that no test reaches by accident, without pauses.
  static var test: SQLLimits {
    var limits = SQLLimits()
    limits.connectionMilliseconds = 60_000
    limits.commitMilliseconds = 60_000
    limits.answerMilliseconds = 60_000
    limits.surveyMilliseconds = 0
    limits.slowAnswerMilliseconds = 60_000
    limits.pause = { _ in }
    return limits
  }
}

extension SQLDatabase {
  /// Adds one to a counter, which must exist.
  func increment(_ name: String = "a") throws(SQLFault) {
    try transaction { session throws(SQLFault) in
      let count = try session.row("SELECT count FROM counters WHERE name = $1 FOR UPDATE", .text(name))?.integer(0)
      guard let count else { throw .misuse }
      try session.run("UPDATE counters SET count = $2 WHERE name = $1", .text(name), .integer(count + 1))
    }
  }

  func addCounter(_ name: String = "a") throws(SQLFault) {
    try transaction { session throws(SQLFault) in
      _ = try session.run("INSERT INTO counters VALUES ($1, 0)", .text(name))
    }
  }

  func counter(_ name: String = "a") throws(SQLFault) -> Int64? {
    try read { session throws(SQLFault) in
      try session.row("SELECT count FROM counters WHERE name = $1", .text(name))?.integer(0)
    }
  }

  /// The number of counters.
  func counterCount() throws(SQLFault) -> Int64? {
    try read { session throws(SQLFault) in try session.row("SELECT count(*) FROM counters")?.integer(0) }
  }
}

/// Runs `body` on several threads at once, and returns what they threw.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws(SQLFault) -> Void) throws -> [SQLFault] {
  let faults = Synchronized<[SQLFault]>([])
  let threads = try (0..<count).map { number in
    try Thread {
      do throws(SQLFault) { try body(number) } catch { faults.change { $0.append(error) } }
    }
  }
  for thread in threads { thread.join() }
  return faults.value
}

/// A value that threads share.
final class Synchronized<Content: Sendable>: Sendable {
  private let content: Mutex<Content>
  init(_ content: Content) { self.content = Mutex(content) }
  var value: Content { content.withLock { $0 } }
  func change(_ body: (inout Content) -> Void) { content.withLock { body(&$0) } }
}

/// Returns what a body throws; nil if it does not.
func fault(_ body: () throws(SQLFault) -> Void) -> SQLFault? {
  do throws(SQLFault) { try body() } catch { return error }
  return nil
}
