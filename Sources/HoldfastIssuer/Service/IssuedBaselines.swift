import HoldfastCore
import HoldfastStorage

/// A record of the tokens that a backend issued.
package protocol IssuedBaselines: ~Copyable {
  /// Durably records the key of a device if none is recorded yet. Returns false, and changes nothing, if another key is
  /// recorded.
  ///
  /// `binding` is SHA-256 of device id ‖ public point.
  mutating func bind(_ device: DeviceID, to binding: Digest) throws(ServiceLedgerFault) -> Bool

  /// Durably records that a baseline belongs to a device. Returns false, and changes nothing, if it belongs to another
  /// one.
  mutating func claim(_ baseline: Digest, for device: DeviceID) throws(ServiceLedgerFault) -> Bool

  /// Durably records a token before it is made.
  mutating func record(_ token: IssuanceRecord) throws(ServiceLedgerFault)

  /// Returns the claim `gen` of the next token for a device: 1 until the generation is raised.
  mutating func generation(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64

  /// Durably raises the generation of a device and returns it. This revokes every older token for the device.
  mutating func raiseGeneration(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64

  /// Returns the owner's record of a device; nil if the device is neither registered nor blocked.
  func registration(of device: DeviceID) throws(ServiceLedgerFault) -> RegisteredDevice?
}

/// A backend's durable record in SQLite.
package struct IssuedBaselinesDatabase: IssuedBaselines {
  let database: Database

  /// The bytes "HFbe".
  private static let applicationID: Int32 = 0x4846_6265

  /// Opens the record. A missing file is created only if `creating` is true, so that the loss of a record does not go
  /// unnoticed.
  package init(path: String, creating: Bool) throws(ServiceLedgerFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID, schema: Self.schema,
        creation: creating ? .ifMissing : .never)
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
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
    """
    CREATE TABLE bulletin (
      audience BLOB NOT NULL, number INTEGER NOT NULL, predecessor INTEGER NOT NULL, issued INTEGER NOT NULL,
      device INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (audience, number)
    ) WITHOUT ROWID, STRICT
    """,
    auditSchema,
    tokenSchema,
  ]

  /// Durably records the key of a device if none is recorded yet. Returns false if another key is recorded.
  package mutating func bind(_ device: DeviceID, to binding: Digest) throws(ServiceLedgerFault) -> Bool {
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR IGNORE INTO device (device, binding) VALUES (?, ?)", .copying(device.bytes), .copying(binding.bytes))
      let bound = try database.oneBytes("SELECT binding FROM device WHERE device = ?", .copying(device.bytes))
      return bound == [UInt8](binding.bytes)
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Durably records that a baseline belongs to a device. Returns false if it belongs to another one.
  package mutating func claim(_ baseline: Digest, for device: DeviceID) throws(ServiceLedgerFault) -> Bool {
    do throws(DatabaseError) {
      try database.run(
        "INSERT OR IGNORE INTO issued (baseline, device) VALUES (?, ?)", .copying(baseline.bytes),
        .copying(device.bytes))
      let owner = try database.oneBytes("SELECT device FROM issued WHERE baseline = ?", .copying(baseline.bytes))
      return owner == [UInt8](device.bytes)
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Returns the claim `gen` of the next token for a device: 1 until the generation is raised.
  package mutating func generation(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64 {
    do throws(DatabaseError) {
      return try database.oneUnsigned(
        "SELECT value FROM generation WHERE device = ?", .copying(device.bytes)) ?? 1
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Durably raises the generation of a device and returns it.
  package mutating func raiseGeneration(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64 {
    do throws(DatabaseError) { return try raise(.copying(device.bytes)) } catch {
      throw ServiceLedgerFault(.issuerLedger, cause: error)
    }
  }

  /// Raises the generation of a device and returns it.
  func raise(_ device: Value) throws(DatabaseError) -> UInt64 {
    try database.run(
      "INSERT INTO generation (device, value) VALUES (?, 2) ON CONFLICT (device) DO UPDATE SET value = value + 1",
      device)
    return try database.oneUnsigned("SELECT value FROM generation WHERE device = ?", device) ?? 1
  }
}

/// A record of the measurement configurations that were appraised, so that each baseline is approved only once.
package protocol SeenConfigurations: ~Copyable {
  /// Durably records the salt of a configuration. Returns false, and changes nothing, if the salt is already recorded.
  /// `created` is the time of the configuration, in Unix seconds.
  mutating func take(_ salt: ConfigurationSalt, created: UInt64) throws(ServiceLedgerFault) -> Bool
}

/// An attestation service's durable record in SQLite.
package struct SeenConfigurationsDatabase: SeenConfigurations {
  private let database: Database

  /// The bytes "HFas".
  private static let applicationID: Int32 = 0x4846_6173

  /// Opens the record. A missing file is created only if `creating` is true, so that the loss of a record does not go
  /// unnoticed.
  package init(path: String, creating: Bool) throws(ServiceLedgerFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID,
        schema: ["CREATE TABLE configuration (salt BLOB PRIMARY KEY, created INTEGER NOT NULL) WITHOUT ROWID, STRICT"],
        creation: creating ? .ifMissing : .never)
    } catch { throw ServiceLedgerFault(.attestationLedger, cause: error) }
  }

  /// Durably records the salt of a configuration. Returns false if the salt is already recorded.
  package mutating func take(_ salt: ConfigurationSalt, created: UInt64) throws(ServiceLedgerFault) -> Bool {
    do throws(DatabaseError) {
      return try database.run(
        "INSERT OR IGNORE INTO configuration (salt, created) VALUES (?, ?)", .copying(salt.bytes), .unsigned(created))
        == 1
    } catch { throw ServiceLedgerFault(.attestationLedger, cause: error) }
  }
}
