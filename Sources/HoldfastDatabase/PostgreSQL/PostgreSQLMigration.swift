import HoldfastLinux

/// The step that creates the tables of a PostgreSQL database and brings them up to date.
///
/// The table `holdfast_schema` has one row: the application's id and the version of the schema.
struct PostgreSQLMigration: Sendable {
  let applicationID: Int32
  let schema: [StaticString]
  let creating: Bool
  let limits: SQLLimits

  /// Runs the missing scripts in one transaction. Other processes that start meanwhile wait for its lock.
  ///
  /// - Throws: `foreign`, `newerVersion`, `missing`, and the faults of a transaction.
  func run(on connection: PostgreSQLConnection, isReplicated: Bool) throws(SQLFault) {
    func perform<Result>(
      _ begin: [StaticString], isDurable: Bool, _ body: (PostgreSQLTransaction) throws(SQLFault) -> Result
    ) throws(SQLFault) -> Result {
      let transaction = PostgreSQLTransaction(
        connection, begin: begin, isDurable: isDurable, isReplicated: isReplicated,
        looksForWaitingCommits: isDurable && connection.server.hasStandbyNames,
        statementMilliseconds: limits.migrationMilliseconds, limits: limits)
      return try transaction.perform { (_) throws(SQLFault) in try body(transaction) }.get()
    }
    // A commit would wait for the standby, which a service that starts need not have; and the lock for another process's commit.
    let present = try perform(Self.look, isDurable: false) { transaction throws(SQLFault) in try version(transaction) }
    guard present != schema.count else { return }
    try perform(Self.begin, isDurable: true) { transaction throws(SQLFault) in try migrate(transaction) }
  }

  private func migrate(_ transaction: PostgreSQLTransaction) throws(SQLFault) {
    try transaction.run(script: Self.lock)
    let present = try version(transaction)
    if present == nil {
      try transaction.run(script: "\(Self.marker); INSERT INTO holdfast_schema VALUES (\(applicationID), 0)")
    }
    let version = present ?? 0
    guard version < schema.count else { return }
    for script in schema[version...] { try transaction.run(script: Dialect.postgreSQLSchema(script.description)) }
    try transaction.run(script: "UPDATE holdfast_schema SET version = \(schema.count)")
  }

  /// Returns the version of the schema, which is at most the present one, after it has checked that the database is of this application;
  /// nil if it is empty.
  private func version(_ transaction: PostgreSQLTransaction) throws(SQLFault) -> Int? {
    if try transaction.run(script: Self.isMarked).last?.text(0) == "t" {
      guard let marker = try transaction.run(script: "SELECT application_id, version FROM holdfast_schema").last,
        marker.text(0) == String(applicationID), let version = marker.text(1).flatMap({ Int($0) })
      else { throw .foreign }
      guard version <= schema.count else { throw .newerVersion }
      guard version >= 0 else { throw .corrupt }
      return version
    }
    guard try transaction.run(script: Self.isEmpty).last?.text(0) == "t" else { throw .foreign }
    guard creating else { throw .missing }
    return nil
  }

  /// One state of the tables, so that another process does not create them between two queries.
  private static let look: [StaticString] = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]

  private static let begin: [StaticString] = [
    "BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = 0",
  ]

  /// The number is arbitrary.
  private static let lock = "SELECT pg_advisory_xact_lock(5217073610436)"

  /// Whether there is a table of that name with these columns.
  private static let isMarked = """
    SELECT count(*) = 2 FROM pg_attribute
    WHERE attrelid = to_regclass('holdfast_schema') AND attname IN ('application_id', 'version')
    """

  /// Whether nobody has created anything, except by an extension.
  private static let isEmpty = """
    SELECT NOT EXISTS (
      SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%' AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'))
    """

  private static let marker = """
    CREATE TABLE holdfast_schema (
      application_id BIGINT NOT NULL, version BIGINT NOT NULL, is_only BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_only))
    """
}
