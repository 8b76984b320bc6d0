import HoldfastCore
import HoldfastStorage

/// The backend's record of its bulletins, which couriers fetch.
extension IssuedBaselinesDatabase {
  /// Makes the next bulletins for an audience and durably records them before it returns them. A complete one takes the place of all
  /// before it.
  ///
  /// - Parameters:
  ///   - isDevice: whether the audience is a device, and not a group.
  ///   - isComplete: whether the first bulletin needs none before it. The first of an audience never does.
  ///   - make: makes the bulletins after the one with this number, 0 if there was none.
  package mutating func issueBulletins(
    for audience: AudienceID, isDevice: Bool, isComplete: Bool, make: (_ last: UInt64) -> [IssuedBulletin]?
  ) throws(ServiceLedgerFault) -> [IssuedBulletin]? {
    let key = Value.copying(audience.bytes)
    var bulletins: [IssuedBulletin]?
    do throws(DatabaseError) {
      try database.transaction { () throws(DatabaseError) in
        let last =
          try database.oneUnsigned("SELECT coalesce(max(number), 0) FROM bulletin WHERE audience = ?", key) ?? 0
        bulletins = make(last)
        if isComplete, bulletins != nil { try database.run("DELETE FROM bulletin WHERE audience = ?", key) }
        for bulletin in bulletins ?? [] { try insert(bulletin, key, isDevice: isDevice) }
      }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
    return bulletins
  }

  private func insert(_ bulletin: IssuedBulletin, _ audience: Value, isDevice: Bool) throws(DatabaseError) {
    try database.run(
      "INSERT INTO bulletin VALUES (?, ?, ?, ?, ?, ?)", audience, .unsigned(bulletin.stamp.number),
      .unsigned(bulletin.stamp.predecessor), .unsigned(bulletin.stamp.issuedAt), .unsigned(isDevice ? 1 : 0),
      .bytes(bulletin.bytes))
  }

  /// Returns the bulletins for a device and for all groups, in the order of their numbers.
  package func bulletins(for device: DeviceID) throws(ServiceLedgerFault) -> [IssuedBulletin] {
    let sql: StaticString = """
      SELECT audience, number, predecessor, issued, bytes FROM bulletin WHERE audience = ? OR device = 0 ORDER BY number
      """
    do throws(DatabaseError) {
      return try database.all(sql, .copying(device.bytes)) { (row) throws(DatabaseError) in try IssuedBulletin(row) }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }
}

extension IssuedBulletin {
  fileprivate init(_ row: borrowing Row) throws(DatabaseError) {
    let audience = try row.bytes(0)
    guard let audience = AudienceID(audience.span) else { throw .corrupt }
    let stamp = BulletinStamp(
      number: try row.unsigned(1), predecessor: try row.unsigned(2), issuedAt: try row.unsigned(3), audience: audience)
    self.init(stamp, try row.bytes(4))
  }
}
