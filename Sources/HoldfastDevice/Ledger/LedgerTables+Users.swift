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
    // A spare has the failures and the lockout of its main authenticator, and does not exist without it.
    let sql: StaticString = """
      SELECT own.id, coalesce(main.failures, own.failures),
        max(coalesce(main.locked_until, own.locked_until), coalesce(main.owner_locked_until, own.owner_locked_until)),
        own.clock_offset, own.last_accepted, own.challenge, own.challenge_expires,
        coalesce(main.failed_factors, own.failed_factors)
      FROM users AS own LEFT JOIN users AS main ON main.name = own.main
      WHERE own.name = ? AND (own.main IS NULL) = (main.name IS NULL)
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
    let lockout: StaticString = """
      UPDATE users SET failures = ?1,
        locked_until = CASE WHEN owner_locked_until > 0 AND owner_locked_until = ?2 THEN locked_until ELSE ?2 END,
        failed_factors = ?3
      WHERE name = (SELECT main FROM users WHERE id = ?4)
      """
    try database.run(
      lockout, .unsigned(user.failureCount), .unsigned(user.lockedUntil),
      .unsigned(UInt64(user.failedFactors.rawValue)), .unsigned(user.id))
    for purpose in CodePurpose.given {
      guard let account = user.accounts[purpose] else { continue }
      let sql: StaticString =
        "UPDATE accounts SET next_position = ?, resynchronising = ? WHERE user = ? AND purpose = ?"
      try database.run(
        sql, .unsigned(account.nextPosition), .optional(account.resynchronisingPosition), .unsigned(user.id),
        .unsigned(UInt64(purpose.rawValue)))
    }
  }

  /// Locks a user, with all authenticators, until a time, in Unix seconds; 0 ends the lock. Returns whether there is such a
  /// user.
  package func setOwnerLock(of name: BoundedText<32>, until: UInt64) throws(DatabaseError) -> Bool {
    try database.run(
      "UPDATE users SET owner_locked_until = ? WHERE name = (SELECT coalesce(main, name) FROM users WHERE name = ?)",
      .unsigned(until), .text(name.description)) > 0
  }

  /// Locks a user until a time, in Unix seconds, and withdraws the codes that wait for the user. Returns whether there is the user.
  func lock(
    _ user: BoundedText<32>, until: UInt64, time: UInt64, state: inout LedgerState
  ) throws(DatabaseError) -> Bool {
    guard try setOwnerLock(of: user, until: until) else { return false }
    try deleteCodes(of: user)
    try append(.userLocked(user, until: until), time: time, to: &state)
    return true
  }

  /// Removes a user, or one spare authenticator. Returns whether there was a user or a code with that name.
  func remove(_ user: BoundedText<32>, time: UInt64, state: inout LedgerState) throws(DatabaseError) -> Bool {
    let spares = try spares(of: user)
    guard try deleteUser(user) else { return false }
    for name in spares + [user] { try append(.userRemoved(name), time: time, to: &state) }
    return true
  }

  /// Deletes the owner's codes for all authenticators of a user.
  package func deleteCodes(of user: BoundedText<32>) throws(DatabaseError) {
    let main = try mainUser(of: user)
    try database.run("DELETE FROM codes WHERE user = ?1 OR main = ?1", .text(main.description))
    // The code that unlocks a spare names only the spare.
    for spare in try spares(of: main) { try database.run("DELETE FROM codes WHERE user = ?", .text(spare.description)) }
  }

  package func users() throws(DatabaseError) -> [BoundedText<32>] {
    try database.all("SELECT name FROM users ORDER BY name") { (row) throws(DatabaseError) in try row.name(0) }
  }

  package func userCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM users") ?? 0
  }

  /// Returns whether there are fewer than `limit` users. Counting takes longer with their number, so it is done only if the highest
  /// id, which is never given again, leaves the question open.
  package func hasUserRoom(limit: UInt64) throws(DatabaseError) -> Bool {
    if try database.oneUnsigned("SELECT coalesce(max(id), 0) FROM users") ?? 0 < limit { return true }
    return try userCount() < limit
  }

  /// Adds a user, or a spare authenticator of one, without accounts. Returns the id.
  package func insertUser(
    _ name: BoundedText<32>, now: UInt64, terms: ActivationTerms = ActivationTerms()
  ) throws(DatabaseError) -> UInt64 {
    let sql: StaticString = """
      INSERT INTO users (name, failures, locked_until, clock_offset, last_accepted, main, demand)
      VALUES (?, 0, 0, 0, ?, ?, ?)
      """
    try database.run(
      sql, .text(name.description), .unsigned(now), terms.main.map { .text($0.description) } ?? .null,
      .unsigned(terms.demand?.stored ?? 0))
    guard let id = try database.oneUnsigned("SELECT id FROM users WHERE name = ?", .text(name.description)) else {
      throw .corrupt
    }
    return id
  }

  /// Deletes a user, the user's spare authenticators, and the owner's codes for them. Returns whether there was a user or a
  /// code with that name.
  @discardableResult
  package func deleteUser(_ name: BoundedText<32>) throws(DatabaseError) -> Bool {
    for spare in try spares(of: name) { try deleteAuthenticator(spare) }
    try database.run("DELETE FROM codes WHERE main = ?", .text(name.description))
    return try deleteAuthenticator(name)
  }

  /// Deletes one authenticator of a user, and the owner's codes for it. Returns whether there was one, or a code for it.
  @discardableResult
  package func deleteAuthenticator(_ name: BoundedText<32>) throws(DatabaseError) -> Bool {
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
    methods: ByPurpose<CodeMethod>, terms: ActivationTerms
  ) throws(DatabaseError) {
    let sql: StaticString = """
      INSERT INTO codes (purpose, key, user, expires, otp, seal, main, demand, renews)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """
    try database.run(
      sql, .unsigned(UInt64(purpose.rawValue)), key, .text(user.description), .unsigned(expires),
      .optional(methods[.otp]?.encoded), .optional(methods[.seal]?.encoded),
      terms.main.map { .text($0.description) } ?? .null, .unsigned(terms.demand?.stored ?? 0),
      .unsigned(terms.renews ? 1 : 0))
  }

  /// Returns what an activation code says in addition to its record; nil if there is no such code.
  package func terms(ofCode id: UInt64) throws(DatabaseError) -> ActivationTerms? {
    try database.one("SELECT main, demand, renews FROM codes WHERE id = ?", .unsigned(id)) {
      (row) throws(DatabaseError) in
      ActivationTerms(
        demand: try row.demand(1), main: try row.isNull(0) ? nil : try row.name(0), renews: try row.unsigned(2) == 1)
    }
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

/// The SQL of the authenticators of a user: the main one, which has the user's name, and the spares.
extension LedgerTables {
  /// A spare's row names its main authenticator. A user of an earlier version whose name looks like that of a spare is none.
  static let authenticatorsSchema: StaticString = """
    ALTER TABLE users ADD COLUMN main TEXT;
    ALTER TABLE users ADD COLUMN demand INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE codes ADD COLUMN main TEXT;
    ALTER TABLE codes ADD COLUMN demand INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE codes ADD COLUMN renews INTEGER NOT NULL DEFAULT 0;
    """

  /// Returns the name of the main authenticator of a spare; any other name itself.
  package func mainUser(of name: BoundedText<32>) throws(DatabaseError) -> BoundedText<32> {
    let sql: StaticString = "SELECT main FROM users WHERE name = ? AND main IS NOT NULL"
    return try database.one(sql, .text(name.description)) { (row) throws(DatabaseError) in try row.name(0) } ?? name
  }

  /// Returns the names of a user's spare authenticators, in order. It looks for the names that they can have: no index has their
  /// main authenticators.
  package func spares(of name: BoundedText<32>) throws(DatabaseError) -> [BoundedText<32>] {
    var spares: [BoundedText<32>] = []
    for spare in name.spareNames where try mainUser(of: spare) == name { spares.append(spare) }
    return spares
  }

  /// Returns the protection that the owner demanded when an authenticator was activated.
  package func demand(of name: BoundedText<32>) throws(DatabaseError) -> ProtectionDemand? {
    let found = try database.one("SELECT demand FROM users WHERE name = ?", .text(name.description)) {
      (row) throws(DatabaseError) -> ProtectionDemand? in try row.demand(0)
    }
    return found ?? nil
  }

  /// Forgets the failures of a user, and ends the lockout and the owner's lock.
  package func unlock(_ name: BoundedText<32>) throws(DatabaseError) {
    let sql: StaticString = """
      UPDATE users SET failures = 0, failed_factors = 0, locked_until = 0, owner_locked_until = 0 WHERE name = ?
      """
    try database.run(sql, .text(name.description))
  }
}

/// The terms of an activation code, in addition to the user and the methods. Only a ledger on Linux keeps them.
package struct ActivationTerms: Sendable, Equatable {
  /// The protection that the owner demands; nil for none.
  package var demand: ProtectionDemand?
  /// The user of whom the code activates a spare authenticator; nil for the main authenticator.
  package var main: BoundedText<32>?
  /// Whether the code gives new secrets to an authenticator that exists, and ends the user's lockout. The user's other
  /// authenticators stay.
  package var renews: Bool

  package init(demand: ProtectionDemand? = nil, main: BoundedText<32>? = nil, renews: Bool = false) {
    (self.demand, self.main, self.renews) = (demand, main, renews)
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
  fileprivate borrowing func demand(_ column: Int) throws(DatabaseError) -> ProtectionDemand? {
    let number = try unsigned(column)
    guard number > 0 else { return nil }
    guard let demand = ProtectionDemand(stored: number) else { throw .corrupt }
    return demand
  }

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
