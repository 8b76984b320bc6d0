import HoldfastCore
import HoldfastStorage

/// The SQL of the issuers that the device trusts.
extension LedgerTables {
  static let macIssuersSchema: StaticString = """
    ALTER TABLE issuers RENAME COLUMN point TO key;
    ALTER TABLE issuers ADD COLUMN algorithm TEXT NOT NULL DEFAULT 'ES256';
    """

  func issuer(_ keyID: KeyID) throws(DatabaseError) -> IssuerKey? {
    try database.one("SELECT algorithm, key FROM issuers WHERE kid = ?", .copying(keyID.bytes)) {
      (row) throws(DatabaseError) -> IssuerKey in
      switch try row.algorithm(0) {
      case .es256: return .signing(try row.fixedBytes(1))
      case .hs256: return .mac(try row.secret(1))
      }
    }
  }

  func isTrusted(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.oneUnsigned("SELECT 1 FROM issuers WHERE kid = ?", .copying(keyID.bytes)) != nil
  }

  func issuerCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM issuers") ?? 0
  }

  func issuers() throws(DatabaseError) -> [TrustedIssuer] {
    let sql: StaticString = """
      SELECT kid, algorithm, coalesce(floor, 0) FROM issuers LEFT JOIN generations USING (kid) ORDER BY kid
      """
    return try database.all(sql) { (row) throws(DatabaseError) in
      TrustedIssuer(
        keyID: try row.fixedBytes(0), algorithm: try row.algorithm(1), generationFloor: try row.unsigned(2))
    }
  }

  func insertIssuer(_ keyID: KeyID, _ issuer: borrowing IssuerKey) throws(DatabaseError) {
    let key: Value
    switch issuer {
    case .signing(let point): key = .copying(point.bytes)
    case .mac(let secret): key = secret.withBytes { .copying($0) }
    }
    try database.run(
      "INSERT INTO issuers (kid, key, algorithm) VALUES (?, ?, ?)", .copying(keyID.bytes), key,
      .text(IssuerAlgorithm(of: issuer).rawValue))
  }

  /// Says whether there was one.
  func deleteIssuer(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.run("DELETE FROM issuers WHERE kid = ?", .copying(keyID.bytes)) > 0
  }
}

/// An issuer whose tokens the device believes. It holds no secret.
public struct TrustedIssuer: Sendable, Equatable {
  public let keyID: KeyID
  public let algorithm: IssuerAlgorithm
  /// The highest generation that was accepted from it.
  public let generationFloor: UInt64
}

/// What an issuer's key is for, by its name in RFC 7518 §3.1.
public enum IssuerAlgorithm: String, Sendable {
  /// A public key: signatures.
  case es256 = "ES256"
  /// A key that the issuer shares with the device: MACs.
  case hs256 = "HS256"

  public init(of issuer: borrowing IssuerKey) {
    self = issuer.isMAC ? .hs256 : .es256
  }
}

extension Row {
  fileprivate borrowing func algorithm(_ column: Int) throws(DatabaseError) -> IssuerAlgorithm {
    guard let algorithm = IssuerAlgorithm(rawValue: try text(column)) else { throw .corrupt }
    return algorithm
  }

  /// Reads a secret of exactly `count` bytes; `corrupt` otherwise.
  borrowing func secret<let count: Int>(_ column: Int) throws(DatabaseError) -> Secret<count> {
    try withBytes(column) { (bytes) throws(DatabaseError) in
      guard let secret = Secret<count>(copying: bytes) else { throw .corrupt }
      return secret
    }
  }
}
