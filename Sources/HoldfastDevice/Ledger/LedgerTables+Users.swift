import HoldfastCore
import HoldfastStorage

/// The SQL of users, their accounts and the owner's one-use codes.
extension LedgerTables {
  static let usersSchema: StaticString = """
    CREATE TABLE users (
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, failures INTEGER NOT NULL,
      failed_factors INTEGER NOT NULL DEFAULT 0, locked_until INTEGER NOT NULL, clock_offset INTEGER NOT NULL,
      last_accepted INTEGER NOT NULL, challenge BLOB, challenge_expires INTEGER
    ) STRICT;
    CREATE TABLE accounts (
      user INTEGER NOT NULL, purpose INTEGER NOT NULL, method BLOB NOT NULL, next_position INTEGER NOT NULL,
      resynchronising INTEGER, secret BLOB NOT NULL, PRIMARY KEY (user, purpose)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE codes (
      id INTEGER PRIMARY KEY AUTOINCREMENT, purpose INTEGER NOT NULL, key BLOB NOT NULL, user TEXT NOT NULL,
      expires INTEGER NOT NULL, otp BLOB, seal BLOB
    ) STRICT;
    """
  /// The owner's lock has a column that no round writes: a right code, which ends a lockout, must not end it.
  static let ownerLockSchema: StaticString =
    "ALTER TABLE users ADD COLUMN owner_locked_until INTEGER NOT NULL DEFAULT 0"

  package func user(named name: BoundedText<32>) throws(DatabaseError) -> UserRecord? {
    let sql: StaticString = """
      SELECT id, failures, max(locked_until, owner_locked_until), clock_offset, last_accepted, challenge, challenge_expires, failed_factors
      FROM users
      WHERE name = ?
      """
    let found = try database.one(sql, .text(name.description)) { (row) throws(DatabaseError) in
      var user = UserRecord(id: try row.unsigned(0), lastAccepted: try row.unsigned(4))
      user.failureCount = try row.unsigned(1)
      user.lockedUntil = try row.unsigned(2)
      user.clockOffsetSeconds = try row.integer(3)
      if try !row.isNull(5) {
        user.challenge = IssuedChallenge(bytes: try row.fixedBytes(5), expires: try row.unsigned(6))
      }
      user.failedFactors = Factors(rawValue: UInt8(clamping: try row.unsigned(7)))
      return user
    }
    guard var user = found else { return nil }
    for purpose in CodePurpose.given {
      user.accounts[purpose] = try account(purpose, of: user.id)
    }
    return user
  }

  /// Writes the changes that a round made to a user, who must exist.
  package func save(_ user: UserRecord) throws(DatabaseError) {
    let sql: StaticString = """
      UPDATE users SET failures = ?1,
        locked_until = CASE WHEN owner_locked_until > 0 AND owner_locked_until = ?2 THEN locked_until ELSE ?2 END,
        clock_offset = ?3, last_accepted = ?4, challenge = ?5, challenge_expires = ?6, failed_factors = ?7
      WHERE id = ?8
      """
    let changed = try database.run(
      sql, .unsigned(user.failureCount), .unsigned(user.lockedUntil), .integer(user.clockOffsetSeconds),
      .unsigned(user.lastAccepted), user.challenge.map { .copying($0.bytes.bytes) } ?? .null,
      .optional(user.challenge?.expires), .unsigned(UInt64(user.failedFactors.rawValue)), .unsigned(user.id))
    guard changed == 1 else { throw .corrupt }
    for purpose in CodePurpose.given {
      guard let account = user.accounts[purpose] else { continue }
      let sql: StaticString =
        "UPDATE accounts SET next_position = ?, resynchronising = ? WHERE user = ? AND purpose = ?"
      try database.run(
        sql, .unsigned(account.nextPosition), .optional(account.resynchronisingPosition), .unsigned(user.id),
        .unsigned(UInt64(purpose.rawValue)))
    }
  }

  /// Locks a user until a time, in Unix seconds; 0 ends the lock. Returns whether there is such a user.
  package func setOwnerLock(of name: BoundedText<32>, until: UInt64) throws(DatabaseError) -> Bool {
    try database.run(
      "UPDATE users SET owner_locked_until = ? WHERE name = ?", .unsigned(until), .text(name.description)) > 0
  }

  /// Deletes the owner's codes for a user.
  package func deleteCodes(of user: BoundedText<32>) throws(DatabaseError) {
    try database.run("DELETE FROM codes WHERE user = ?", .text(user.description))
  }

  package func users() throws(DatabaseError) -> [BoundedText<32>] {
    try database.all("SELECT name FROM users ORDER BY name") { (row) throws(DatabaseError) in try row.name(0) }
  }

  package func userCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM users") ?? 0
  }

  /// Adds a user without accounts. Returns the user's id.
  package func insertUser(_ name: BoundedText<32>, now: UInt64) throws(DatabaseError) -> UInt64 {
    let sql: StaticString = """
      INSERT INTO users (name, failures, locked_until, clock_offset, last_accepted) VALUES (?, 0, 0, 0, ?)
      """
    try database.run(sql, .text(name.description), .unsigned(now))
    guard let id = try database.oneUnsigned("SELECT id FROM users WHERE name = ?", .text(name.description)) else {
      throw .corrupt
    }
    return id
  }

  /// Deletes a user and the owner's codes for the user. Returns whether there was a user or a code with that name.
  @discardableResult
  package func deleteUser(_ name: BoundedText<32>) throws(DatabaseError) -> Bool {
    try database.run(
      "DELETE FROM accounts WHERE user IN (SELECT id FROM users WHERE name = ?)", .text(name.description))
    let codeCount = try database.run("DELETE FROM codes WHERE user = ?", .text(name.description))
    let userCount = try database.run("DELETE FROM users WHERE name = ?", .text(name.description))
    return codeCount + userCount > 0
  }

  private func account(_ purpose: CodePurpose, of userID: UInt64) throws(DatabaseError) -> CodeAccount? {
    let sql: StaticString = """
      SELECT method, next_position, resynchronising FROM accounts WHERE user = ? AND purpose = ?
      """
    return try database.one(sql, .unsigned(userID), .unsigned(UInt64(purpose.rawValue))) {
      (row) throws(DatabaseError) in
      var account = CodeAccount(method: try row.method(0), nextPosition: try row.unsigned(1))
      if try !row.isNull(2) { account.resynchronisingPosition = try row.unsigned(2) }
      return account
    }
  }

  package func insertAccount(
    _ purpose: CodePurpose, _ method: CodeMethod, nextPosition: UInt64, secret: Span<UInt8>, of userID: UInt64
  ) throws(DatabaseError) {
    try database.run(
      "INSERT INTO accounts VALUES (?, ?, ?, ?, NULL, ?)", .unsigned(userID), .unsigned(UInt64(purpose.rawValue)),
      .bytes(method.encoded), .unsigned(nextPosition), .copying(secret))
  }

  package func secret(_ purpose: CodePurpose, of userID: UInt64) throws(DatabaseError) -> CodeSecret? {
    let sql: StaticString = "SELECT secret FROM accounts WHERE user = ? AND purpose = ?"
    return try database.one(sql, .unsigned(userID), .unsigned(UInt64(purpose.rawValue))) {
      (row) throws(DatabaseError) in
      try row.withBytes(0) { (bytes) throws(DatabaseError) in
        var secret = CodeSecret()
        do throws(EncodingFault) { try secret.append(bytes) } catch { throw .corrupt }
        return secret
      }
    }
  }
}

/// The SQL of one-use codes.
extension LedgerTables {
  package func insertCode(
    _ purpose: OneUseCode.Purpose, key: Value, _ user: BoundedText<32>, expires: UInt64,
    methods: ByPurpose<CodeMethod>
  ) throws(DatabaseError) {
    try database.run(
      "INSERT INTO codes (purpose, key, user, expires, otp, seal) VALUES (?, ?, ?, ?, ?, ?)",
      .unsigned(UInt64(purpose.rawValue)), key, .text(user.description), .unsigned(expires),
      .optional(methods[.otp]?.encoded),
      .optional(methods[.seal]?.encoded))
  }

  package func code(at index: Int) throws(DatabaseError) -> OneUseCodeRecord? {
    try code("SELECT id, purpose, key, user, expires, otp, seal FROM codes ORDER BY id LIMIT 1 OFFSET ?", UInt64(index))
  }

  package func code(id: UInt64) throws(DatabaseError) -> OneUseCodeRecord? {
    try code("SELECT id, purpose, key, user, expires, otp, seal FROM codes WHERE id = ?", id)
  }

  private func code(_ sql: StaticString, _ number: UInt64) throws(DatabaseError) -> OneUseCodeRecord? {
    try database.one(sql, .unsigned(number)) { (row) throws(DatabaseError) in
      guard let purpose = OneUseCode.Purpose(rawValue: UInt8(clamping: try row.unsigned(1))) else { throw .corrupt }
      let key: Secret<32> = try row.secret(2)
      let methods = ByPurpose(
        otp: try row.isNull(5) ? nil : try row.method(5), seal: try row.isNull(6) ? nil : try row.method(6))
      return OneUseCodeRecord(
        id: try row.unsigned(0), purpose: purpose, key: key, user: try row.name(3), expires: try row.unsigned(4),
        methods: methods)
    }
  }

  /// Reads the facts about one of the owner's codes; nil if there is no such code.
  func facts(
    ofCode id: UInt64, state: LedgerState, limits: LedgerLimits
  ) throws(DatabaseError) -> CodeFacts? {
    guard let code = try code(id: id) else { return nil }
    let user = try user(named: code.user)
    return CodeFacts(
      code: code, user: user, userCount: Int(try userCount()), userCapacity: Int(limits.userCount),
      clockFloor: state.clockFloor)
  }

  package func deleteCode(id: UInt64) throws(DatabaseError) {
    try database.run("DELETE FROM codes WHERE id = ?", .unsigned(id))
  }

  /// Deletes the codes that have expired, and those of one user and purpose.
  package func deleteCodes(expiredAt now: UInt64, of user: BoundedText<32>, _ purpose: OneUseCode.Purpose)
    throws(DatabaseError)
  {
    try database.run(
      "DELETE FROM codes WHERE expires <= ? OR (user = ? AND purpose = ?)", .unsigned(now), .text(user.description),
      .unsigned(UInt64(purpose.rawValue)))
  }

  package func codeCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM codes") ?? 0
  }
}

extension CodeMethod {
  /// The CBOR encoding of the method.
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }
}

extension Row {
  borrowing func name(_ column: Int) throws(DatabaseError) -> BoundedText<32> {
    guard let name = BoundedText<32>(try text(column)) else { throw .corrupt }
    return name
  }

  borrowing func method(_ column: Int) throws(DatabaseError) -> CodeMethod {
    let bytes = try bytes(column)
    do throws(EncodingFault) {
      var reader = CBORReader(bytes.span)
      let method = try CodeMethod(&reader)
      try reader.finish()
      return method
    } catch { throw .corrupt }
  }
}
