import HoldfastCore
import HoldfastStorage

/// What a backend remembers of what it issued.
package protocol IssuedBaselines: ~Copyable {
  /// Records durably which key a device has, the first time; false, and nothing changes, when it had another one.
  ///
  /// `binding` is SHA-256 of device id ‖ public point.
  mutating func bind(_ device: DeviceID, to binding: Digest) throws(LedgerFault) -> Bool

  /// Records durably that a baseline is one device's; false, and nothing changes, when it is another one's.
  mutating func claim(_ baseline: Digest, for device: DeviceID) throws(LedgerFault) -> Bool

  /// `gen` of the next token for a device: 1 until it is raised.
  mutating func generation(of device: DeviceID) throws(LedgerFault) -> UInt64

  /// Raises the generation of a device durably, and returns it: every older token is revoked there.
  mutating func raiseGeneration(of device: DeviceID) throws(LedgerFault) -> UInt64

  /// The owner's record of a device; nil where it is neither registered nor blocked.
  func registration(of device: DeviceID) throws(LedgerFault) -> RegisteredDevice?
}

/// The durable record of a backend, in SQLite.
package struct IssuedBaselinesDatabase: IssuedBaselines {
  let database: Database

  /// "HFbe".
  private static let applicationID: Int32 = 0x4846_6265

  /// Opens the record; one that is missing is made only when `creating`: a record that was lost must not begin anew unseen.
  package init(path: String, creating: Bool) throws(LedgerFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID, schema: Self.schema,
        creation: creating ? .ifMissing : .never)
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  private static let schema: [StaticString] = [
    """
    CREATE TABLE issued (baseline BLOB PRIMARY KEY, device BLOB NOT NULL) WITHOUT ROWID, STRICT;
    CREATE TABLE generation (device BLOB PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;
    """,
    "CREATE TABLE device (device BLOB PRIMARY KEY, binding BLOB NOT NULL) WITHOUT ROWID, STRICT",
    """
    CREATE TABLE listed (device BLOB PRIMARY KEY, point BLOB NOT NULL, label TEXT, added INTEGER NOT NULL)
      WITHOUT ROWID, STRICT;
    CREATE TABLE blocked (device BLOB PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID, STRICT;
    """,
  ]

  package mutating func bind(_ device: DeviceID, to binding: Digest) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR IGNORE INTO device (device, binding) VALUES (?, ?)", .copying(device.bytes), .copying(binding.bytes))
      let bound = try database.oneBytes("SELECT binding FROM device WHERE device = ?", .copying(device.bytes))
      return bound == [UInt8](copying: binding.bytes)
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  package mutating func claim(_ baseline: Digest, for device: DeviceID) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR IGNORE INTO issued (baseline, device) VALUES (?, ?)", .copying(baseline.bytes),
        .copying(device.bytes))
      let owner = try database.oneBytes("SELECT device FROM issued WHERE baseline = ?", .copying(baseline.bytes))
      return owner == [UInt8](copying: device.bytes)
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  package mutating func generation(of device: DeviceID) throws(LedgerFault) -> UInt64 {
    do throws(DatabaseError) {
      return try database.oneUnsigned(
        "SELECT value FROM generation WHERE device = ?", .copying(device.bytes)) ?? 1
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  package mutating func raiseGeneration(of device: DeviceID) throws(LedgerFault) -> UInt64 {
    do throws(DatabaseError) { return try raise(.copying(device.bytes)) } catch {
      throw LedgerFault(.issuerLedger, cause: error)
    }
  }

  /// Raises the generation of the device with that id, and returns it.
  func raise(_ device: Value) throws(DatabaseError) -> UInt64 {
    try database.run(
      "INSERT INTO generation (device, value) VALUES (?, 2) ON CONFLICT (device) DO UPDATE SET value = value + 1",
      device)
    return try database.oneUnsigned("SELECT value FROM generation WHERE device = ?", device) ?? 1
  }
}

/// The measurement configurations that were appraised before: a baseline is approved once.
package protocol SeenConfigurations: ~Copyable {
  /// Records a configuration's salt durably; false, and nothing changes, when it was there already.
  mutating func take(_ salt: FixedBytes<32>, created: UInt64) throws(LedgerFault) -> Bool
}

/// The durable record of an attestation service, in SQLite.
package struct SeenConfigurationsDatabase: SeenConfigurations {
  private let database: Database

  /// "HFas".
  private static let applicationID: Int32 = 0x4846_6173

  /// Opens the record; one that is missing is made only when `creating`: a record that was lost must not begin anew unseen.
  package init(path: String, creating: Bool) throws(LedgerFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID,
        schema: ["CREATE TABLE configuration (salt BLOB PRIMARY KEY, created INTEGER NOT NULL) WITHOUT ROWID, STRICT"],
        creation: creating ? .ifMissing : .never)
    } catch { throw LedgerFault(.attestationLedger, cause: error) }
  }

  package mutating func take(_ salt: FixedBytes<32>, created: UInt64) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      return try database.run(
        "INSERT OR IGNORE INTO configuration (salt, created) VALUES (?, ?)", .copying(salt.bytes), .unsigned(created))
        == 1
    } catch { throw LedgerFault(.attestationLedger, cause: error) }
  }
}
