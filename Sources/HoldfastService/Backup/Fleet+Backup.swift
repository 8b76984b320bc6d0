import Glibc
import HoldfastCore
import HoldfastDatabase
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// A restored backup.
package struct Restoration: Sendable, Equatable {
  /// The time of the backup, in Unix seconds.
  package let moment: UInt64
  /// The number of records.
  package let recordCount: UInt64
}

extension Fleet {
  /// The rows of one page.
  private static var pageRowCount: UInt64 { 500 }

  /// Writes a backup: one state of all tables, encrypted with the service key. It can be restored into either kind of database.
  ///
  /// - Parameters:
  ///   - begin: Begins the file anew, and returns whether it could. It is called again if the connection to the database was lost.
  ///   - write: Appends bytes to the file, and returns whether it could.
  /// - Returns: The number of records.
  package func export(
    begin: () -> Bool, write: @escaping ([UInt8]) -> Bool
  ) throws(BackupFault) -> UInt64 {
    var fault: BackupFault?
    do throws(FleetFault) {
      return try read { (session) throws(FleetFault) in
        try Self.ending(&fault, begin() ? self.exported(session, write) : .failure(.file))
      }
    } catch { throw fault ?? .fleet(error) }
  }

  private func exported(_ session: FleetSession, _ write: @escaping ([UInt8]) -> Bool) -> Result<UInt64, BackupFault> {
    Result { () throws(BackupFault) in try export(session, write) }
  }

  private func export(
    _ session: FleetSession, _ write: @escaping ([UInt8]) -> Bool
  ) throws(BackupFault) -> UInt64 {
    var random = SystemRandom()
    let sealing: BackupSealing
    do throws(CryptographyFailure) { sealing = try .writing(with: serviceKey, random: &random) } catch {
      throw .fleet(.cryptography)
    }
    let writer = try BackupWriter(
      sealing, version: FleetSchema.scripts.count, moment: session.now, write: write)
    for table in BackupTable.all {
      try writer.append(.table(table.name))
      var last = table.start
      while true {
        let rows: [[Value]]
        do throws(FleetFault) {
          rows = try session.rows(table.page, values: last + [.unsigned(Self.pageRowCount)]).map(\.values)
        } catch { throw .fleet(error) }
        for row in rows { try writer.append(.row(row)) }
        guard let row = rows.last else { break }
        last = table.key.map { row[$0] }
      }
    }
    return try writer.finish()
  }

  /// Restores a backup into an empty database, in one transaction.
  ///
  /// The backup cannot know what the service did after it. Therefore, unless `isComplete` says that this was nothing, the restored
  /// service never goes back: it accepts only baselines that are newer than the restore, no attestation token, invitation, request
  /// or operator's token of before, and every device's generation rises beyond any that the service can have reached.
  ///
  /// - Parameters:
  ///   - location: A database without a service.
  ///   - serviceKey: The key of the service that wrote the backup.
  ///   - isComplete: Whether the service changed and issued nothing after the backup.
  ///   - begin: Begins to read the file anew, and returns whether it could. It is called again if the connection to the database
  ///     was lost.
  ///   - read: Returns the next bytes of the file, as many as asked for except at its end; nil if it cannot be read.
  /// - Throws: ``BackupFault``. Nothing is restored then.
  package static func restore(
    into location: DatabaseLocation, serviceKey: borrowing ServiceKey, isComplete: Bool, by actor: Actor,
    clock: any Clock & Sendable = SystemClock(), begin: () -> Bool,
    read: @escaping (Int) -> [UInt8]?
  ) throws(BackupFault) -> Restoration {
    guard let now = clock.unixSeconds() else { throw .fleet(.noClock) }
    guard begin() else { throw .file }
    let version = try BackupReader(with: serviceKey, read: read).version
    guard (1...UInt64(FleetSchema.scripts.count)).contains(version) else { throw .newerVersion }
    let key = isComplete ? nil : try freshAttestationKey(serviceKey)
    var fault: BackupFault?
    do throws(FleetFault) {
      let database = try open(location, connectionCount: 1, creating: true, schemaVersion: Int(version))
      return try transaction(in: database, at: now) { (session) throws(FleetFault) in
        try ending(
          &fault, begin() ? session.restored(read, serviceKey, location, cuttingOff: key, by: actor) : .failure(.file))
      }
    } catch { throw fault ?? .fleet(error) }
  }

  /// Returns a result, or throws a fault that ends the transaction, and keeps what the conversion loses.
  private static func ending<Value>(
    _ fault: inout BackupFault?, _ result: Result<Value, BackupFault>
  ) throws(FleetFault) -> Value {
    switch result {
    case .success(let value): return value
    case .failure(let error):
      fault = error.kind == .fleet ? nil : error
      throw error.cause
    }
  }
}

extension FleetSession {
  /// Runs statements, with the faults of a backup.
  fileprivate func restoring<Result>(
    _ body: (FleetSession) throws(FleetFault) -> Result
  ) throws(BackupFault) -> Result {
    do throws(FleetFault) { return try body(self) } catch { throw .fleet(error) }
  }

  /// Restores a backup whose file has begun.
  fileprivate func restored(
    _ read: @escaping (Int) -> [UInt8]?, _ serviceKey: borrowing ServiceKey, _ location: DatabaseLocation,
    cuttingOff key: Fleet.SealedKey?, by actor: Actor
  ) -> Result<Restoration, BackupFault> {
    do throws(BackupFault) {
      let reader = try BackupReader(with: serviceKey, read: read)
      let count = try restore(reader, isComplete: key == nil)
      if case .postgreSQL = location { try continueNumbers(version: Int(reader.version)) }
      if let key { try cutOff(with: key) }
      let detail = "backup of \(reader.moment)"
      try restoring { (session) throws(FleetFault) in try session.log("service.restore", "", by: actor, detail) }
      return .success(Restoration(moment: reader.moment, recordCount: count))
    } catch { return .failure(error) }
  }

  /// Writes all rows of a backup into empty tables.
  fileprivate func restore(_ reader: BackupReader, isComplete: Bool) throws(BackupFault) -> UInt64 {
    let tables = BackupTable.all.filter { $0.since <= reader.version }
    for table in tables {
      let isEmpty = try restoring { (session) throws(FleetFault) in
        try session.rows(table.page, values: table.start + [.unsigned(1)]).isEmpty
      }
      guard isEmpty else { throw .notEmpty }
    }
    var next = tables.makeIterator()
    var current: BackupTable?
    while true {
      switch try reader.next() {
      case .table(let name):
        current = next.next()
        guard current?.name == name else { throw .damaged }
      case .row(var values):
        guard let table = current else { throw .damaged }
        if !isComplete { table.precaution(&values, now) }
        try restoring { [values] (session) throws(FleetFault) in
          _ = try session.rows(table.insert, values: values)
        }
      case .end(let count):
        guard next.next() == nil else { throw .damaged }
        return count
      }
    }
  }

  /// Lets PostgreSQL go on with the numbers of rows after the last one.
  fileprivate func continueNumbers(version: Int) throws(BackupFault) {
    for statement in BackupTable.numbered where statement.since <= version {
      _ = try restoring { (session) throws(FleetFault) in try session.rows(statement.continuing) }
    }
  }

  /// Ends whatever began before the restore: attestation tokens cannot be opened any more, and baselines do not count.
  fileprivate func cutOff(with key: Fleet.SealedKey) throws(BackupFault) {
    try restoring { (session) throws(FleetFault) in
      try session.run("UPDATE keys SET sealed = $1 WHERE purpose = $2", .bytes(key.sealed), .text(key.purpose.rawValue))
      try session.run(
        """
        INSERT INTO settings (name, value, revision) VALUES ('restored', $1, $2)
        ON CONFLICT (name) DO UPDATE SET revision = excluded.revision
        """,
        .bytes([]), .unsigned(session.now))
      // Apps know a number that was raised after the backup, and take no lower one. A service that never raised it has no row.
      for setting in [AppSetting.configuration, .messageEpoch] {
        try session.run(
          """
          INSERT INTO settings (name, value, revision) VALUES ($1, $2, 1048577)
          ON CONFLICT (name) DO UPDATE SET revision = settings.revision + 1048576
          """,
          .text(setting.rawValue), .bytes([]))
      }
      try session.raiseRevision()
    }
  }
}
