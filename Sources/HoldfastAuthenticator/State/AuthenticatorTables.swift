import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// The durable records of an authenticator: the tables of its folder, or the state in a store of the app's own.
package protocol RecordTables {
  /// Runs `body` in one durable transaction, which is on the disk when this returns. After an error, nothing is changed.
  func transaction<Result>(_ body: () throws(AuthenticatorFault) -> Result) throws(AuthenticatorFault) -> Result

  /// Returns all records, or those of one user, in the order of users and indices.
  func records(of user: String?) throws(AuthenticatorFault) -> [StoredRecord]

  /// Stores a record. It replaces the one with the same user and index, if there is one.
  func save(_ stored: StoredRecord) throws(AuthenticatorFault)

  /// Deletes the record with a user and an index, if there is one.
  func delete(_ user: String, _ index: Int) throws(AuthenticatorFault)

  /// Returns the records of a user that replace others once the device has confirmed them.
  func replacements(of user: String) throws(AuthenticatorFault) -> [StoredRecord]

  /// Stores a replacement.
  func saveReplacement(_ stored: StoredRecord) throws(AuthenticatorFault)

  /// Deletes the replacements of a user, or only the one with `index`; without a user, all of them.
  func deleteReplacements(of user: String?, index: Int?) throws(AuthenticatorFault)

  /// Removes every trace of erased values, durably before any later write.
  func eraseRemains() throws(AuthenticatorFault)
}

extension RecordTables {
  /// Returns all records.
  package func records() throws(AuthenticatorFault) -> [StoredRecord] { try records(of: nil) }

  /// Returns the record with a user and an index; nil if there is none.
  package func record(_ user: String, _ index: Int) throws(AuthenticatorFault) -> StoredRecord? {
    try records(of: user).first { $0.record.index == index }
  }

  /// Deletes the replacements of a user; without a user, all of them.
  package func deleteReplacements(of user: String?) throws(AuthenticatorFault) {
    try deleteReplacements(of: user, index: nil)
  }
}

/// The authenticator's tables, with all of its SQL.
package struct AuthenticatorTables: RecordTables {
  package let database: Database

  /// The bytes "HfAu".
  package static let applicationID: Int32 = 0x4866_4175

  package static let schema: [StaticString] = [
    """
    CREATE TABLE records (
      user TEXT NOT NULL, number INTEGER NOT NULL, purpose INTEGER NOT NULL, issuer TEXT NOT NULL, device_id BLOB,
      method BLOB NOT NULL, next_counter INTEGER NOT NULL, acknowledged_counter INTEGER NOT NULL,
      clock_offset INTEGER NOT NULL, last_time_step INTEGER, last_synchronised INTEGER, look_ahead INTEGER,
      seal_field_limit INTEGER, protection_group INTEGER NOT NULL, is_confirmed INTEGER NOT NULL,
      protection BLOB NOT NULL, secret BLOB, change INTEGER NOT NULL, undo BLOB, client_challenge TEXT,
      change_position INTEGER,
      PRIMARY KEY (user, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE erasures (id INTEGER PRIMARY KEY CHECK (id = 1), count INTEGER NOT NULL) STRICT;
    INSERT INTO erasures VALUES (1, 0);
    """,
    """
    ALTER TABLE records ADD COLUMN demand INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE replacements (
      user TEXT NOT NULL, number INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (user, number)
    ) STRICT, WITHOUT ROWID;
    """,
  ]

  package init(path: String) throws(AuthenticatorFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID, schema: Self.schema, busyTimeoutMilliseconds: 5000)
    } catch { throw AuthenticatorFault(error) }
  }

  package func transaction<Result>(_ body: () throws(AuthenticatorFault) -> Result) throws(AuthenticatorFault) -> Result
  {
    try database.transaction(mapping: AuthenticatorFault.init, body)
  }

  package func records(of user: String?) throws(AuthenticatorFault) -> [StoredRecord] {
    do throws(DatabaseError) {
      return try database.all(
        """
        SELECT user, number, purpose, issuer, device_id, method, next_counter, acknowledged_counter, clock_offset,
          last_time_step, last_synchronised, look_ahead, seal_field_limit, protection_group, is_confirmed, protection,
          secret, change, undo, client_challenge, change_position, demand
        FROM records WHERE ?1 IS NULL OR user = ?1 ORDER BY user, number
        """, .optional(user), body: StoredRecord.init)
    } catch { throw AuthenticatorFault(error) }
  }

  package func save(_ stored: StoredRecord) throws(AuthenticatorFault) {
    let record = stored.record
    var method: [UInt8] = []
    record.method.encode(into: &method)
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        .text(record.user), .unsigned(UInt64(record.index)), .unsigned(UInt64(record.purpose.rawValue)),
        .text(record.issuer), record.deviceID.map { .copying($0.bytes) } ?? .null, .bytes(method),
        .unsigned(record.nextCounter), .unsigned(record.acknowledgedCounter), .integer(record.clockOffsetSeconds),
        .optional(record.lastTimeStep), .optional(record.lastSynchronised), .optional(record.lookAheadWindow),
        .optional(record.sealFieldByteLimit.map(UInt64.init)), .unsigned(record.protectionGroup),
        .unsigned(record.isConfirmed ? 1 : 0), .bytes((stored.secret?.protection ?? .none).encoded),
        stored.secret.map { $0.bytes.withBytes { .copying($0) } } ?? .null, .unsigned(UInt64(record.change.rawValue)),
        .optional(stored.undo), .optional(stored.clientChallenge), .optional(record.changePosition),
        .unsigned(record.demand?.stored ?? 0))
    } catch { throw AuthenticatorFault(error) }
  }

  package func delete(_ user: String, _ index: Int) throws(AuthenticatorFault) {
    do throws(DatabaseError) {
      try database.run("DELETE FROM records WHERE user = ? AND number = ?", .text(user), .unsigned(UInt64(index)))
    } catch { throw AuthenticatorFault(error) }
  }

  package func replacements(of user: String) throws(AuthenticatorFault) -> [StoredRecord] {
    do throws(DatabaseError) {
      return try database.all("SELECT record FROM replacements WHERE user = ? ORDER BY number", .text(user)) {
        (row) throws(DatabaseError) in
        let bytes = try row.bytes(0)
        do throws(EncodingFault) {
          var reader = CBORReader(bytes.span)
          let stored = try StoredRecord(&reader)
          try reader.finish()
          return stored
        } catch { throw .corrupt }
      }
    } catch { throw AuthenticatorFault(error) }
  }

  package func saveReplacement(_ stored: StoredRecord) throws(AuthenticatorFault) {
    var bytes: [UInt8] = []
    stored.encode(into: &bytes)
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR REPLACE INTO replacements VALUES (?, ?, ?)", .text(stored.record.user),
        .unsigned(UInt64(stored.record.index)), .bytes(bytes))
    } catch { throw AuthenticatorFault(error) }
  }

  package func deleteReplacements(of user: String?, index: Int?) throws(AuthenticatorFault) {
    do throws(DatabaseError) {
      try database.run(
        "DELETE FROM replacements WHERE (?1 IS NULL OR user = ?1) AND (?2 IS NULL OR number = ?2)", .optional(user),
        .optional(index.map(UInt64.init)))
    } catch { throw AuthenticatorFault(error) }
  }

  /// Removes every trace of erased values from the file and its log: the file is rewritten and the log emptied. The write at the end brings this to the disk before any later write.
  package func eraseRemains() throws(AuthenticatorFault) {
    do throws(DatabaseError) {
      try database.run("VACUUM")
      try database.checkpoint()
      try database.run("UPDATE erasures SET count = count + 1")
    } catch { throw AuthenticatorFault(error) }
  }
}

extension StoredRecord {
  fileprivate init(_ row: borrowing Row) throws(DatabaseError) {
    let (methodBytes, protectionBytes) = (try row.bytes(5), try row.bytes(15))
    let protection: Protection
    let method: CodeMethod
    do throws(EncodingFault) {
      method = try CodeMethod(encoded: methodBytes)
      protection = try Protection(encoded: protectionBytes)
    } catch { throw .corrupt }
    let limit = try row.optionalUnsigned(12)
    let demand = try row.unsigned(21)
    guard demand == 0 || ProtectionDemand(stored: demand) != nil else { throw .corrupt }
    let clockOffsetSeconds = try row.integer(8)
    guard Record.clockOffsetBounds.contains(clockOffsetSeconds) else { throw .corrupt }
    guard let purpose = RecordPurpose(rawValue: try row.byte(2)),
      let change = ChangeProgress(rawValue: try row.byte(17)),
      Record.indices.contains(Int(try row.byte(1))), (limit ?? 64) <= 64
    else { throw .corrupt }
    var deviceID: DeviceID?
    if try !row.isNull(4) {
      deviceID = try row.withBytes(4) { (bytes) throws(DatabaseError) in DeviceID(bytes) }
      guard deviceID != nil else { throw .corrupt }
    }
    record = Record(
      user: try row.text(0), index: Int(try row.byte(1)), purpose: purpose, issuer: try row.text(3), deviceID: deviceID,
      method: method, nextCounter: try row.bounded(6), acknowledgedCounter: try row.bounded(7),
      clockOffsetSeconds: clockOffsetSeconds, lastTimeStep: try row.optionalUnsigned(9),
      lastSynchronised: try row.optionalUnsigned(10), lookAheadWindow: try row.optionalUnsigned(11),
      sealFieldByteLimit: limit.map { Int($0) }, protection: protection.inputs, protectionGroup: try row.bounded(13),
      isConfirmed: try row.byte(14) == 1, change: change, changePosition: try row.optionalUnsigned(20),
      demand: ProtectionDemand(stored: demand))
    if try !row.isNull(16) {
      let bytes = try row.withBytes(16) { (bytes) throws(DatabaseError) in SecretBytes(copying: bytes) }
      guard (1...Credential.maximumSecretByteCount).contains(bytes.count) else { throw .corrupt }
      secret = BlindedSecret(protection: protection, bytes: bytes)
    }
    if try !row.isNull(18) { undo = try row.bytes(18) }
    if try !row.isNull(19) { clientChallenge = try row.text(19) }
  }
}

extension CodeMethod {
  init(encoded bytes: [UInt8]) throws(EncodingFault) {
    var reader = CBORReader(bytes.span)
    try self.init(&reader)
    try reader.finish()
  }
}

extension Row {
  fileprivate borrowing func byte(_ column: Int) throws(DatabaseError) -> UInt8 {
    guard let byte = UInt8(exactly: try unsigned(column)) else { throw .corrupt }
    return byte
  }

  fileprivate borrowing func bounded(_ column: Int) throws(DatabaseError) -> UInt64 {
    let number = try unsigned(column)
    guard number <= maximumInteger else { throw .corrupt }
    return number
  }

  fileprivate borrowing func optionalUnsigned(_ column: Int) throws(DatabaseError) -> UInt64? {
    try isNull(column) ? nil : try bounded(column)
  }
}
