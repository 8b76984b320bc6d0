import HoldfastCore
import HoldfastStorage

/// The SQL of the device's runs, and of the time during which an issuer is trusted.
extension LedgerTables {
  static let runsSchema: StaticString = """
    CREATE TABLE runs (id INTEGER PRIMARY KEY CHECK (id = 1), host TEXT, disorderly INTEGER NOT NULL) STRICT;
    INSERT INTO runs VALUES (1, NULL, 0);
    ALTER TABLE issuers ADD COLUMN trusted_from INTEGER;
    ALTER TABLE issuers ADD COLUMN trusted_until INTEGER;
    ALTER TABLE issuers ADD COLUMN label TEXT;
    """

  package func runs() throws(DatabaseError) -> RunRecord {
    let record = try database.one("SELECT host, disorderly FROM runs") { (row) throws(DatabaseError) in
      RunRecord(host: try row.isNull(0) ? nil : try row.text(0), disorderlyEnds: try row.unsigned(1))
    }
    guard let record else { throw .corrupt }
    return record
  }

  func save(_ record: RunRecord) throws(DatabaseError) {
    try database.run(
      "UPDATE runs SET host = ?, disorderly = ?", .optional(record.host), .unsigned(record.disorderlyEnds))
  }

  /// Returns whether an issuer is trusted at the device's time `now` for a token that it issued at `issuedAt`, in Unix seconds.
  ///
  /// A token from after the end of the trust does not count, even if the device's clock is behind.
  package func trusts(_ keyID: KeyID, at now: UInt64, issuedAt: UInt64 = 0) throws(DatabaseError) -> Bool {
    try trustedAlgorithm(keyID, at: now, issuedAt: issuedAt) != nil
  }

  /// Returns the algorithm of an issuer that is trusted in this way; nil for any other.
  func trustedAlgorithm(_ keyID: KeyID, at now: UInt64, issuedAt: UInt64) throws(DatabaseError) -> IssuerAlgorithm? {
    let sql: StaticString = """
      SELECT algorithm FROM issuers
      WHERE kid = ?1 AND coalesce(trusted_from <= ?2, 1) AND coalesce(trusted_until > ?3, 1)
      """
    return try database.one(sql, .copying(keyID.bytes), .unsigned(now), .unsigned(max(now, issuedAt))) {
      (row) throws(DatabaseError) in try row.algorithm(0)
    }
  }

  package func terms(of keyID: KeyID) throws(DatabaseError) -> TrustTerms {
    let sql: StaticString = "SELECT trusted_from, trusted_until, label FROM issuers WHERE kid = ?"
    return try database.one(sql, .copying(keyID.bytes)) { (row) throws(DatabaseError) in try row.terms(0) }
      ?? TrustTerms()
  }

  func save(_ terms: TrustTerms, of keyID: KeyID) throws(DatabaseError) {
    try database.run(
      "UPDATE issuers SET trusted_from = ?, trusted_until = ?, label = ? WHERE kid = ?", .optional(terms.from),
      .optional(terms.until), .optional(terms.label?.description), .copying(keyID.bytes))
  }
}

extension Row {
  /// Reads the begin, end and label of an issuer's trust from three columns.
  borrowing func terms(_ first: Int) throws(DatabaseError) -> TrustTerms {
    var terms = TrustTerms()
    if try !isNull(first) { terms.from = try unsigned(first) }
    if try !isNull(first + 1) { terms.until = try unsigned(first + 1) }
    if try !isNull(first + 2) {
      guard let label = BoundedText<64>(try text(first + 2)) else { throw .corrupt }
      terms.label = label
    }
    return terms
  }
}

/// The owner's terms for trusting an issuer: when the trust begins and ends, and a label.
package struct TrustTerms: Sendable, Equatable {
  /// The device's time from which the issuer is trusted, in Unix seconds; nil for always.
  package var from: UInt64?
  /// The device's time from which the issuer is no longer trusted, in Unix seconds; nil for never.
  package var until: UInt64?
  /// The owner's words about the key, at most 64 bytes.
  package var label: BoundedText<64>?

  package init(from: UInt64? = nil, until: UInt64? = nil, label: BoundedText<64>? = nil) {
    (self.from, self.until, self.label) = (from, until, label)
  }

  /// Whether the trust does not end before it begins.
  var isPossible: Bool { (from ?? 0) < until ?? .max }

  /// Returns these terms with those of `earlier` that they do not name.
  func completed(by earlier: TrustTerms) -> TrustTerms {
    TrustTerms(from: from ?? earlier.from, until: until ?? earlier.until, label: label ?? earlier.label)
  }
}

/// The runs of the device's server, as the ledger records them.
package struct RunRecord: Sendable, Equatable {
  /// The start of the host (its boot id) in which the server started that has not ended in order; nil if the last one has.
  package var host: String?
  /// The number of runs that did not end in order.
  package var disorderlyEnds: UInt64

  package init(host: String?, disorderlyEnds: UInt64) {
    (self.host, self.disorderlyEnds) = (host, disorderlyEnds)
  }
}

extension AuditEvent {
  /// Makes the event that the last run did not end in order. It is a failure without a round (number 0).
  ///
  /// - Parameter hostRestarted: whether the host was restarted since; nil if that is not known.
  static func runEnded(hostRestarted: Bool?) -> AuditEvent {
    let text =
      switch hostRestarted {
      case true: "the host went down"
      case false: "the process was killed or crashed"
      default: "the process or its host went down"
      }
    return .failed(AuditedFailure(round: 0, ActuatorFailure(.ended, text: BoundedText(text) ?? BoundedText())))
  }
}
