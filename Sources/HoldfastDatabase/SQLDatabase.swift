import HoldfastStorage

/// The place of a database.
package enum DatabaseLocation: Sendable {
  /// A file of SQLite.
  case sqlite(path: String)
  /// A database of a PostgreSQL server, by a URL of libpq (`postgresql://…`) with one or several hosts.
  case postgreSQL(url: String)
}

/// A durable database for any number of threads: SQLite or PostgreSQL, with the same SQL.
///
/// The changes of a transaction are on the disk when the call returns, and on the synchronous standby if there is one.
package final class SQLDatabase: Sendable {
  private let backend: any SQLBackend

  /// Opens a database, creates its tables if it is empty, and brings its schema up to date. Any number of processes may do so at
  /// once.
  ///
  /// A script of the schema uses the types `INTEGER`, `BLOB` and `TEXT`, which is ordered by bytes; `IDENTITY` in place of a type
  /// for a key that rises automatically and has gaps; `STRICT` and `WITHOUT ROWID` after a table, for SQLite; and the statement
  /// `APPEND ONLY name;`, after which UPDATE and DELETE in that table throw `constraint`.
  ///
  /// - Parameters:
  ///   - location: The file or the server.
  ///   - applicationID: An id that is written into a new database and compared in an existing one; not 0.
  ///   - name: The name that PostgreSQL shows for the connections.
  ///   - schema: SQL scripts; the script at index n takes version n to n + 1. Only ever append.
  ///   - connectionCount: The highest number of connections, at least 1. SQLite has at least two.
  ///   - creating: Whether a missing or empty database becomes a new one.
  ///   - limits: The limits of time.
  /// - Throws: `unavailable`, `busy`, `slow`, `full`, `readOnly`, `permission`, `corrupt`; `foreign` if the database has tables of
  ///   another application; `newerVersion`; `missing` if there is no database and `creating` is false; `notSynchronous`, `noStandby`,
  ///   `uncertain`; `misuse` if the URL is none of PostgreSQL, `applicationID` is 0 or `connectionCount` is below 1.
  package init(
    _ location: DatabaseLocation, applicationID: Int32, name: String = "holdfast-service", schema: [StaticString],
    connectionCount: Int = 8, creating: Bool = true, limits: SQLLimits = SQLLimits()
  ) throws(SQLFault) {
    guard applicationID != 0, connectionCount > 0 else { throw .misuse }
    switch location {
    case .sqlite(let path):
      backend = try SQLiteBackend(
        path: path, applicationID: applicationID, schema: schema, connectionCount: connectionCount, creating: creating,
        limits: limits)
    case .postgreSQL(let url):
      backend = try PostgreSQLBackend(
        url: url, applicationID: applicationID, name: name, schema: schema, connectionCount: connectionCount,
        creating: creating, limits: limits)
    }
  }

  /// Runs a body as one durable transaction: after a return, everything is written; after a fault other than `uncertain`, nothing.
  ///
  /// On PostgreSQL, transactions see what others have committed (READ COMMITTED), so the body locks with `FOR UPDATE` the rows on
  /// which it decides. On SQLite, one transaction that writes runs at a time.
  ///
  /// - Parameter body: Reads and writes through the session. It may run several times, when transactions collide and when a
  ///   connection is lost, so it must have no other effects; and it must not use this database except through the session.
  /// - Returns: The result of the last run of the body.
  /// - Throws: The faults of the body, and those of ``SQLFault`` but `foreign`, `newerVersion` and `missing`.
  package func transaction<Result>(
    _ body: (any SQLSession) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Result {
    try backend.transaction(body)
  }

  /// Runs queries on one state of the database, which is that of the first query.
  ///
  /// - Parameter body: Reads through the session; it may run several times, and must have no other effects.
  /// - Returns: The result of the last run of the body.
  /// - Throws: The faults of the body, and those of ``transaction(_:)`` but `uncertain` and `noStandby`; `readOnly` for a statement that writes.
  package func read<Result>(
    _ body: (any SQLSession) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Result {
    try backend.read(body)
  }

  /// Checks that the database answers and may be used, for a readiness probe.
  ///
  /// - Throws: The faults of ``read(_:)``.
  package func check() throws(SQLFault) {
    try backend.check()
  }
}

/// The implementation of a database.
protocol SQLBackend: Sendable {
  func transaction<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result
  func read<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result
  func check() throws(SQLFault)
}
