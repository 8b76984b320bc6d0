import HoldfastCore
import HoldfastStorage

/// The SQL of the request numbers that were accepted with each token.
extension LedgerTables {
  static let requestsSchema: StaticString = """
    CREATE TABLE requests (
      kid BLOB NOT NULL, jti BLOB NOT NULL, expires INTEGER NOT NULL, highest INTEGER NOT NULL, below INTEGER NOT NULL,
      digest BLOB NOT NULL, outcome INTEGER, PRIMARY KEY (kid, jti)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX requests_by_expiry ON requests (expires);
    ALTER TABLE state ADD COLUMN request_count INTEGER NOT NULL DEFAULT 0;
    """

  func request(of request: RequestIdentity, clockFloor: UInt64) throws(DatabaseError) -> RequestRecord? {
    try self.request(key(request.verifyingKey), .copying(request.tokenID.bytes), clockFloor: clockFloor)
  }

  /// What is kept of a token, unless the clock floor has reached its `exp`.
  func request(_ verifyingKey: Value, _ tokenID: Value, clockFloor: UInt64) throws(DatabaseError) -> RequestRecord? {
    let sql: StaticString = """
      SELECT highest, below, digest, outcome FROM requests WHERE kid = ? AND jti = ? AND expires > ?
      """
    return try database.one(sql, verifyingKey, tokenID, .unsigned(clockFloor)) { (row) throws(DatabaseError) in
      RequestRecord(
        highest: try row.unsigned(0), window: UInt64(bitPattern: try row.integer(1)), digest: try row.fixedBytes(2),
        outcome: try row.isNull(3) ? nil : try row.outcome(3))
    }
  }

  /// A token that comes again with a later `exp` is kept for as long as the later one says.
  func keep(
    _ record: RequestRecord, _ verifyingKey: Value, _ tokenID: Value, expires: UInt64, state: inout LedgerState
  ) throws(DatabaseError) {
    let (highest, window) = (Value.unsigned(record.highest), Value.integer(Int64(bitPattern: record.window)))
    let digest = Value.copying(record.digest.bytes)
    let outcome = Value.optional(record.outcome.map { UInt64($0.rawValue) })
    let update: StaticString = """
      UPDATE requests SET highest = ?, below = ?, digest = ?, outcome = ?, expires = max(expires, ?)
      WHERE kid = ? AND jti = ?
      """
    let changed = try database.run(
      update, highest, window, digest, outcome, .unsigned(expires), verifyingKey, tokenID)
    guard changed == 0 else { return }
    try database.run(
      "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", verifyingKey, tokenID, .unsigned(expires), highest, window,
      digest, outcome)
    state.requestCount += 1
  }

  /// Writes what came of a request, unless a higher number was accepted since.
  func keep(_ outcome: Status, of request: RequestIdentity) throws(DatabaseError) {
    _ = try database.run(
      "UPDATE requests SET outcome = ? WHERE kid = ? AND jti = ? AND highest = ?", .unsigned(UInt64(outcome.rawValue)),
      key(request.verifyingKey), .copying(request.tokenID.bytes), .unsigned(request.number))
  }

  /// Drops at most `limit` records of tokens whose `exp` the clock floor has reached.
  func dropOutdatedRequests(limit: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let sql: StaticString = """
      DELETE FROM requests WHERE (kid, jti) IN
        (SELECT kid, jti FROM requests WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    let dropped = try database.run(sql, .unsigned(state.clockFloor), .unsigned(limit))
    guard dropped <= state.requestCount else { throw .corrupt }
    state.requestCount -= UInt64(dropped)
  }

  /// Unsigned tokens have the empty key.
  func key(_ keyID: KeyID?) -> Value {
    keyID.map { .copying($0.bytes) } ?? .bytes([])
  }
}

extension Row {
  fileprivate borrowing func outcome(_ column: Int) throws(DatabaseError) -> Status {
    switch Status(rawValue: UInt8(clamping: try unsigned(column))) {
    case .accepted: .accepted
    case .internal: .internal
    default: throw .corrupt
    }
  }
}
