import HoldfastCore
import HoldfastStorage

/// The backend's record of its tokens, by which their ids are known to it alone.
extension IssuedBaselinesDatabase {
  static let tokenSchema: StaticString = """
    CREATE TABLE token (
      number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, baseline BLOB NOT NULL, device BLOB NOT NULL,
      subject TEXT NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL, patch INTEGER NOT NULL, user TEXT,
      generation INTEGER NOT NULL, issued INTEGER NOT NULL, expires INTEGER NOT NULL
    ) STRICT
    """

  /// Durably records a token. Like its baseline, it is never forgotten: a clock that is ahead would have valid tokens forgotten.
  package mutating func record(_ token: IssuanceRecord) throws(ServiceLedgerFault) {
    do throws(DatabaseError) {
      try database.run(
        "INSERT INTO token VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", .copying(token.tokenID.bytes),
        .copying(token.baseline.bytes), .copying(token.device.bytes), .text(token.subject.description),
        .unsigned(token.version.major), .unsigned(token.version.minor), .unsigned(token.version.patch),
        .optional(token.user?.description), .unsigned(token.generation), .unsigned(token.issuedAt),
        .unsigned(token.expires))
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Returns the tokens that have not expired, in the order in which they were issued.
  ///
  /// - Parameters:
  ///   - device: The device that they are for; nil for all.
  ///   - now: The present time, in Unix seconds.
  package func tokens(for device: DeviceID?, now: UInt64) throws(ServiceLedgerFault) -> [IssuanceRecord] {
    let sql: StaticString = """
      SELECT id, baseline, device, subject, major, minor, patch, user, generation, issued, expires FROM token
      WHERE expires > ?1 AND (?2 IS NULL OR device = ?2) ORDER BY number
      """
    let device = device.map { Value.copying($0.bytes) } ?? .null
    do throws(DatabaseError) {
      return try database.all(sql, .unsigned(now), device) { (row) throws(DatabaseError) in try IssuanceRecord(row) }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }
}

extension IssuanceRecord {
  fileprivate init(_ row: borrowing Row) throws(DatabaseError) {
    let (id, baseline, device) = (try row.bytes(0), try row.bytes(1), try row.bytes(2))
    let version = AppVersion(major: try row.unsigned(4), minor: try row.unsigned(5), patch: try row.unsigned(6))
    let user = try row.isNull(7) ? nil : try row.text(7)
    guard let id = TokenID(id.span), let baseline = Digest(baseline.span), let device = DeviceID(device.span),
      let subject = BoundedText<64>(try row.text(3)), let name = user.map({ BoundedText<32>($0) }) ?? .some(nil)
    else { throw .corrupt }
    self.init(
      baseline: baseline, device: device, tokenID: id, subject: subject, version: version, user: name,
      generation: try row.unsigned(8), issuedAt: try row.unsigned(9), expires: try row.unsigned(10))
  }
}
