import HoldfastCore
import HoldfastStorage

/// The measurement configurations that were appraised before: a baseline is approved once.
public protocol SeenConfigurations: ~Copyable {
  /// Records a configuration's salt durably; false, and nothing changes, when it was there already.
  mutating func take(_ salt: FixedBytes<32>, created: UInt64) throws(LedgerFault) -> Bool
}

/// The durable record of an attestation service, in SQLite.
public struct SeenConfigurationsDatabase: SeenConfigurations {
  private let database: Database

  /// "HFas".
  private static let applicationID: Int32 = 0x4846_6173

  /// Opens the record; one that is missing is made only when `creating`: a record that was lost must not begin anew unseen.
  public init(path: String, creating: Bool) throws(LedgerFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: Self.applicationID,
        schema: ["CREATE TABLE configuration (salt BLOB PRIMARY KEY, created INTEGER NOT NULL) WITHOUT ROWID, STRICT"],
        creation: creating ? .ifMissing : .never)
    } catch { throw LedgerFault(.attestationLedger, cause: error) }
  }

  public mutating func take(_ salt: FixedBytes<32>, created: UInt64) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      return try database.run(
        "INSERT OR IGNORE INTO configuration (salt, created) VALUES (?, ?)", .copying(salt.bytes), .unsigned(created))
        == 1
    } catch { throw LedgerFault(.attestationLedger, cause: error) }
  }
}
