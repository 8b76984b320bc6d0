import HoldfastCore
import HoldfastStorage
import Synchronization

extension LedgerTables {
  /// Reads the facts that the ledger holds for `round`. It writes nothing.
  package func snapshot(
    for round: borrowing AppraisalInput, state: LedgerState, limits: LedgerLimits
  ) throws(DatabaseError) -> LedgerSnapshot {
    var snapshot = LedgerSnapshot(clockFloor: state.clockFloor)
    let (verifyingKey, tokenID) = key(of: round)
    if let keyID = round.verifyingKey {
      let algorithm = try trustedAlgorithm(
        keyID, at: state.time(realClock: round.realClock), issuedAt: round.issuedAt)
      (snapshot.isIssuerTrusted, snapshot.hasBulletins) = (algorithm != nil, algorithm == .es256)
      snapshot.generationFloor = try generationFloor(keyID)
    }
    if let name = round.codeUser { snapshot.user = try user(named: name) }
    snapshot.forgottenThrough = state.forgottenThrough
    if state.bulletinCount > 0 { try addBulletins(to: &snapshot, for: round) }
    snapshot.isAuditLogFull = isAuditLogFull(state)
    snapshot.replayRoom = ReplayRoom(
      recordCount: Int(state.keptCount), capacity: Int(limits.keptCount), nonceQuota: Int(limits.nonceQuota))
    if round.maximumUses != nil {
      let sql: StaticString = "SELECT count, expires FROM uses WHERE kid = ? AND jti = ?"
      snapshot.uses = try database.one(sql, verifyingKey, tokenID) { (row) throws(DatabaseError) in
        UseRecord(count: try row.unsigned(0), expires: try row.unsigned(1))
      }
    }
    if let nonce = round.compatibilityNonce {
      let sql: StaticString = "SELECT 1 FROM nonces WHERE kid = ? AND jti = ? AND nonce = ?"
      snapshot.isNonceUsed = try database.oneUnsigned(sql, verifyingKey, tokenID, .copying(nonce.bytes)) != nil
      let ofToken = try database.oneUnsigned(
        "SELECT count(*) FROM (SELECT 1 FROM nonces WHERE kid = ? AND jti = ? LIMIT ?)", verifyingKey, tokenID,
        .unsigned(limits.nonceQuota))
      snapshot.nonceCount = Int(ofToken ?? 0)
    }
    if round.requestNumber != nil {
      snapshot.request = try request(verifyingKey, tokenID)
      snapshot.hasRequestRoom = state.requestCount < limits.requestCount
    }
    return snapshot
  }

  /// Writes the changes that `decision` makes. Floors only rise.
  package func apply(_ decision: borrowing Decision, to round: borrowing AppraisalInput, state: inout LedgerState)
    throws(DatabaseError)
  {
    let (verifyingKey, tokenID) = key(of: round)
    state.clockFloor = max(state.clockFloor, decision.clockFloor)
    if let floor = decision.generationFloor {
      let sql: StaticString = """
        INSERT INTO generations VALUES (?, ?) ON CONFLICT DO UPDATE SET floor = excluded.floor WHERE excluded.floor > floor
        """
      try database.run(sql, verifyingKey, .unsigned(floor))
    }
    if let user = decision.user { try save(user) }
    if let uses = decision.uses { try keep(uses, verifyingKey, tokenID, state: &state) }
    if decision.keepsNonce, let nonce = round.compatibilityNonce {
      try database.run(
        "INSERT INTO nonces VALUES (?, ?, ?, ?)", verifyingKey, tokenID, .copying(nonce.bytes),
        .unsigned(round.expires))
      state.keptCount += 1
    }
    if let request = decision.request {
      try keep(request, verifyingKey, tokenID, state: &state)
    }
  }

  /// Drops at most `limit` use counts and nonces each, and request records, of tokens whose `exp` the clock floor has
  /// reached. Such tokens can never count again.
  package func dropOutdated(limit: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let uses: StaticString = """
      DELETE FROM uses WHERE (kid, jti) IN
        (SELECT kid, jti FROM uses WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    let nonces: StaticString = """
      DELETE FROM nonces WHERE (kid, jti, nonce) IN
        (SELECT kid, jti, nonce FROM nonces WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    for sql in [uses, nonces] {
      let dropped = try database.run(sql, .unsigned(state.clockFloor), .unsigned(limit))
      guard dropped <= state.keptCount else { throw .corrupt }
      state.keptCount -= UInt64(dropped)
    }
    try dropOutdatedRequests(limit: limit, state: &state)
  }

  private func keep(
    _ uses: UseRecord, _ verifyingKey: Value, _ tokenID: Value, state: inout LedgerState
  ) throws(DatabaseError) {
    let (count, expires) = (Value.unsigned(uses.count), Value.unsigned(uses.expires))
    let update: StaticString = "UPDATE uses SET count = ?, expires = ? WHERE kid = ? AND jti = ?"
    guard try database.run(update, count, expires, verifyingKey, tokenID) == 0 else { return }
    try database.run("INSERT INTO uses VALUES (?, ?, ?, ?)", verifyingKey, tokenID, expires, count)
    state.keptCount += 1
  }

  /// Returns the columns that name a token. Its bytes do not: the same token can be encoded again without any key. Unsigned
  /// tokens have an empty verifying key.
  private func key(of round: borrowing AppraisalInput) -> (verifyingKey: Value, tokenID: Value) {
    (key(round.verifyingKey), .copying(round.tokenID.bytes))
  }
}

/// The SQL of the commands that were accepted with each token, with the factors that a first use needs.
extension LedgerTables {
  static let introductionsSchema: StaticString = """
    CREATE TABLE introductions (
      kid BLOB NOT NULL, jti BLOB NOT NULL, command TEXT NOT NULL, expires INTEGER NOT NULL,
      PRIMARY KEY (kid, jti, command)
    ) STRICT, WITHOUT ROWID;
    """
  /// The most rows. A token that finds no place gives the further factors each time.
  private static var introductionLimit: UInt64 { 10_000 }

  func hasIntroduced(
    _ verifyingKey: KeyID?, _ tokenID: TokenID, for command: BoundedText<32>
  ) throws(DatabaseError) -> Bool {
    let sql: StaticString = "SELECT 1 FROM introductions WHERE kid = ? AND jti = ? AND command = ?"
    return try database.oneUnsigned(
      sql, key(verifyingKey), .copying(tokenID.bytes), .text(command.description)) != nil
  }

  /// Records the first use of a command, and drops the records of tokens that have expired.
  func introduce(_ round: borrowing AppraisalInput, clockFloor: UInt64) throws(DatabaseError) {
    try database.run("DELETE FROM introductions WHERE expires <= ?", .unsigned(clockFloor))
    let count = try database.oneUnsigned("SELECT count(*) FROM introductions") ?? 0
    guard count < Self.introductionLimit else { return }
    let (verifyingKey, tokenID) = key(of: round)
    try database.run(
      "INSERT OR REPLACE INTO introductions VALUES (?, ?, ?, ?)", verifyingKey, tokenID,
      .text(round.command.description), .unsigned(round.expires))
  }
}

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

  package func request(of request: RequestIdentity) throws(DatabaseError) -> RequestRecord? {
    try self.request(key(request.verifyingKey), .copying(request.tokenID.bytes))
  }

  package func request(_ verifyingKey: Value, _ tokenID: Value) throws(DatabaseError) -> RequestRecord? {
    let sql: StaticString = "SELECT highest, below, digest, expires, outcome FROM requests WHERE kid = ? AND jti = ?"
    return try database.one(sql, verifyingKey, tokenID) { (row) throws(DatabaseError) in
      RequestRecord(
        highest: try row.unsigned(0), window: UInt64(bitPattern: try row.integer(1)), digest: try row.fixedBytes(2),
        expires: try row.unsigned(3), outcome: try row.isNull(4) ? nil : try row.outcome(4))
    }
  }

  package func keep(
    _ record: RequestRecord, _ verifyingKey: Value, _ tokenID: Value, state: inout LedgerState
  ) throws(DatabaseError) {
    let (highest, window) = (Value.unsigned(record.highest), Value.integer(Int64(bitPattern: record.window)))
    let digest = Value.copying(record.digest.bytes)
    let outcome = Value.optional(record.outcome.map { UInt64($0.rawValue) })
    let update: StaticString = """
      UPDATE requests SET highest = ?, below = ?, digest = ?, outcome = ?, expires = ? WHERE kid = ? AND jti = ?
      """
    let expires = Value.unsigned(record.expires)
    let changed = try database.run(update, highest, window, digest, outcome, expires, verifyingKey, tokenID)
    guard changed == 0 else { return }
    try database.run(
      "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", verifyingKey, tokenID, expires, highest, window, digest,
      outcome)
    state.requestCount += 1
  }

  /// Writes the outcome of a request, unless a higher number was accepted since.
  package func keep(_ outcome: Status, of request: RequestIdentity) throws(DatabaseError) {
    _ = try database.run(
      "UPDATE requests SET outcome = ? WHERE kid = ? AND jti = ? AND highest = ?", .unsigned(UInt64(outcome.rawValue)),
      key(request.verifyingKey), .copying(request.tokenID.bytes), .unsigned(request.number))
  }

  /// Drops at most `limit` records of tokens whose `exp` the clock floor has reached.
  package func dropOutdatedRequests(limit: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let sql: StaticString = """
      DELETE FROM requests WHERE (kid, jti) IN
        (SELECT kid, jti FROM requests WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    let dropped = try database.run(sql, .unsigned(state.clockFloor), .unsigned(limit))
    guard dropped <= state.requestCount else { throw .corrupt }
    state.requestCount -= UInt64(dropped)
  }

  /// Returns the column of a verifying key, which is empty for unsigned tokens.
  package func key(_ keyID: KeyID?) -> Value {
    keyID.map { .copying($0.bytes) } ?? .bytes([])
  }
}

extension Row {
  fileprivate borrowing func outcome(_ column: Int) throws(DatabaseError) -> Status {
    switch Status(rawValue: UInt8(clamping: try unsigned(column))) {
    case .accepted: .accepted
    case .internal: .internal
    case .sealRejected: .sealRejected
    default: throw .corrupt
    }
  }
}

/// The numbered requests that this process is carrying out, and the outcomes that could not be written to the ledger at once.
///
/// The ledger's next transaction writes them. If the process ends before it, the outcome is unknown, and a repetition is
/// answered with `internal`.
final class RunningRequests: Sendable {
  private let state = Mutex(State())

  private struct State {
    var acting: Set<RequestIdentity> = []
    var outcomes: [RequestIdentity: Status] = [:]
  }

  /// Records that the actuator is about to act.
  func begin(_ request: RequestIdentity) {
    state.withLock { state in _ = state.acting.insert(request) }
  }

  /// Records the outcome of a request.
  func end(_ request: RequestIdentity, _ outcome: Status) {
    state.withLock { state in
      state.acting.remove(request)
      state.outcomes[request] = outcome
    }
  }

  /// Records that the actuator does not act after all.
  func abandon(_ request: RequestIdentity) {
    state.withLock { state in _ = state.acting.remove(request) }
  }

  /// Completes the ledger's facts about `round` with those in memory.
  func complete(_ snapshot: inout LedgerSnapshot, for round: borrowing AppraisalInput) {
    guard let request = RequestIdentity(round) else { return }
    state.withLock { state in
      snapshot.isActing = state.acting.contains(request)
      guard snapshot.request?.highest == request.number, let outcome = state.outcomes[request] else { return }
      snapshot.request?.outcome = outcome
    }
  }

  /// The outcomes that are still to be written. They stay until ``remove(_:)``.
  var outcomes: [RequestIdentity: Status] {
    state.withLock { $0.outcomes }
  }

  /// Drops outcomes that were written.
  func remove(_ written: [RequestIdentity: Status]) {
    guard !written.isEmpty else { return }
    state.withLock { state in
      for request in written.keys { state.outcomes[request] = nil }
    }
  }
}
