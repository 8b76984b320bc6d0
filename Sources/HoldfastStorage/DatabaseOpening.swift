import CSQLite
import Glibc
import HoldfastLinux

/// The steps that turn a path into a checked and migrated database.
package struct DatabaseOpening {
  let connection: Connection
  private let path: String

  init(path: String, creation: Database.Creation, wait: LockWait) throws(DatabaseError) {
    guard !path.utf8.contains(0) else { throw .cannotOpen }
    self.path = Self.literalPath(path)
    try Self.requirePrivateFile(at: self.path, creation: creation)
    connection = try Connection(path: self.path, wait: wait)
  }

  /// Returns a path that SQLite does not interpret specially, as it does ":memory:" and "file:".
  package static func literalPath(_ path: String) -> String {
    path.utf8.first == UInt8(ascii: "/") ? path : "./" + path
  }

  /// Checks the file, configures the connection and migrates the schema; returns whether the database is new.
  func prepare(
    applicationID: Int32, schema: [String], creation: Database.Creation, check: Database.Check
  ) throws(DatabaseError) -> Bool {
    // The three reads are one transaction: between separate reads, another connection could create the database.
    try connection.execute("BEGIN")
    let version = try checkedVersion(applicationID: applicationID, newest: schema.count)
    try connection.execute("COMMIT")
    if version == nil && creation == .never { throw .corrupt }
    try look(check)
    try switchToLog()
    try connection.execute(
      """
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA cell_size_check = ON;
      PRAGMA temp_store = MEMORY;
      """)
    // An up-to-date database is opened without waiting for writers.
    let isNew = version == schema.count ? false : try migrate(applicationID: applicationID, schema: schema)
    try settleLog()
    try synchronizeNames()
    return isNew
  }

  private func look(_ check: Database.Check) throws(DatabaseError) {
    if case .skipped = check { return }
    guard case .sparing(let spared, let byteCount) = check,
      try integer("PRAGMA page_count") * integer("PRAGMA page_size") > byteCount
    else {
      guard try text("PRAGMA quick_check(1)") == "ok" else { throw .corrupt }
      return
    }
    for table in try tables() where table != spared {
      let quoted = table.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
      guard try text("PRAGMA quick_check('\(quoted)')") == "ok" else { throw .corrupt }
    }
  }

  private func tables() throws(DatabaseError) -> [String] {
    let statement = try connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
    var names = ["sqlite_schema"]
    while try statement.step() { names.append(try statement.text(in: 0)) }
    return names
  }

  /// Switches to the write-ahead log. SQLite itself does not wait for every lock of a new file.
  private func switchToLog() throws(DatabaseError) {
    let deadline = Deadline(afterMilliseconds: Int(connection.wait.milliseconds))
    while true {
      do throws(DatabaseError) {
        guard try text("PRAGMA journal_mode = WAL") == "wal" else { throw .cannotOpen }
        return
      } catch {
        guard error == .busy, !deadline.hasPassed else { throw error }
        usleep(1000)
      }
    }
  }

  /// Moves the log that a stopped process left into the file.
  ///
  /// If synchronising the log has failed, the system may still show log content that a power cut would remove, and every later
  /// commit in the log would be lost with it.
  private func settleLog() throws(DatabaseError) {
    do throws(DatabaseError) {
      try connection.checkpoint(mode: SQLITE_CHECKPOINT_PASSIVE)
    } catch {
      // Another connection holds the lock; the first connection has already done this.
      guard error == .busy else { throw error }
    }
  }

  /// Synchronises the folder that names the file and its log.
  ///
  /// SQLite does so for a new log as well, but treats it as done even if the system reports a failure: a commit could then be in
  /// a file that has no name after a power cut.
  private func synchronizeNames() throws(DatabaseError) {
    guard let place = try? FilePath(path) else { throw .cannotOpen }
    do throws(SystemError) {
      let folder = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      let number = folder.number
      try retrying { fsync(number) }
    } catch { throw DatabaseError(code: SQLITE_IOERR, systemErrorNumber: error.number) }
  }

  /// Rejects the file of another application or of a newer version; returns the schema's version, or nil if the database is empty.
  private func checkedVersion(applicationID: Int32, newest: Int) throws(DatabaseError) -> Int? {
    let found = try integer("PRAGMA application_id")
    let version = try integer("PRAGMA user_version")
    if found == 0 && version == 0 {
      guard try integer("SELECT count(*) FROM sqlite_schema") == 0 else { throw .foreign }
      return nil
    }
    guard found == Int64(applicationID) else { throw .foreign }
    guard version >= 0 else { throw .corrupt }
    guard version <= Int64(newest) else { throw .newerVersion(found: Int32(truncatingIfNeeded: version)) }
    return Int(version)
  }

  /// Runs the missing scripts in one transaction, and checks the identity again under the lock. An error ends the connection, and
  /// the transaction with it.
  private func migrate(applicationID: Int32, schema: [String]) throws(DatabaseError) -> Bool {
    try connection.execute("BEGIN IMMEDIATE")
    let version = try checkedVersion(applicationID: applicationID, newest: schema.count)
    for script in schema[(version ?? 0)...] { try connection.execute(script) }
    if version == nil { try connection.execute("PRAGMA application_id = \(applicationID)") }
    if version != schema.count { try connection.execute("PRAGMA user_version = \(schema.count)") }
    try connection.execute("COMMIT")
    return version == nil
  }

  private func integer(_ sql: String) throws(DatabaseError) -> Int64 {
    let statement = try connection.prepare(sql)
    guard try statement.step() else { throw .corrupt }
    return try statement.integer(in: 0)
  }

  private func text(_ sql: String) throws(DatabaseError) -> String {
    let statement = try connection.prepare(sql)
    guard try statement.step() else { throw .corrupt }
    return try statement.text(in: 0)
  }

  /// Creates the file with mode 0600, or checks the existing one without opening it: closing a second descriptor would release
  /// the locks that SQLite holds for this process.
  private static func requirePrivateFile(at path: String, creation: Database.Creation) throws(DatabaseError) {
    var status = stat()
    if unsafe lstat(path, &status) != 0 {
      let number = errno
      guard number == ENOENT, creation == .ifMissing else { throw error(for: number) }
      let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      if descriptor >= 0 {
        _ = close(descriptor)
      } else if errno != EEXIST {
        throw error(for: errno)
      }
      guard unsafe lstat(path, &status) == 0 else { throw error(for: errno) }
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .cannotOpen }
    guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else { throw .permission }
  }

  private static func error(for number: Int32) -> DatabaseError {
    switch number {
    case EACCES, EPERM: .permission
    case EROFS: .readOnly
    case ENOSPC, EDQUOT: .full
    default: .cannotOpen
    }
  }
}
