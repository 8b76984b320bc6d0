import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The changes for an audience since the last bulletin by one key. A bulletin affects only tokens under its own key.
struct BulletinNews {
  let issuer: FleetKeys.Issuer
  /// The revoked tokens, in any order.
  var revoked: [ListedToken] = []
  /// The generation of the device, if it rose.
  var generation: UInt64?

  /// Whether nothing changed.
  var isEmpty: Bool { revoked.isEmpty && generation == nil }
}

/// A revoked token as a bulletin names it.
struct ListedToken {
  let id: TokenID
  /// The time at which the token expires, in Unix seconds.
  let until: UInt64

  /// Reads the columns id and expiry.
  init(_ row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let (bytes, until) = try session.decoding { () throws(SQLFault) in (try row.bytes(0), try row.unsigned(1)) }
    guard let id = TokenID(bytes.span) else { throw .corrupt }
    (self.id, self.until) = (id, until)
  }
}

extension FleetSession {
  /// Returns what changed for an audience, for each key for which something did.
  ///
  /// A token is revoked in the bulletins of its device's first group, or in the device's own if it has no group; but not if the
  /// generation of the device excludes it.
  func news(for audience: BulletinAudience, of keys: FleetKeys) throws(FleetFault) -> [BulletinNews] {
    var all: [BulletinNews] = []
    for issuer in keys.issuers where issuer.active <= now {
      var news = BulletinNews(issuer: issuer)
      let values = [audience.key, .copying(issuer.id.bytes), .unsigned(now)]
      switch audience.kind {
      case .device(let device):
        news.revoked = try revoked(Self.newOfDevice, values)
        news.generation = try newGeneration(of: device, values, isPresent: issuer.id == keys.issuer(at: now)?.id)
      case .group: news.revoked = try revoked(Self.newOfGroup, values)
      }
      if !news.isEmpty { all.append(news) }
    }
    return all
  }

  private func revoked(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [ListedToken] {
    var tokens: [ListedToken] = []
    for row in try rows(sql, values: values) { tokens.append(try ListedToken(row, in: self)) }
    return tokens
  }

  private static let newOfDevice: StaticString = """
    SELECT t.id, t.expires FROM tokens t JOIN devices d ON d.id = t.device
    WHERE t.device = $1 AND t.revoked IS NOT NULL AND t.signer = $2 AND t.expires > $3 AND t.generation >= d.generation
      AND NOT EXISTS (SELECT 1 FROM group_devices g WHERE g.device = $1)
      AND NOT EXISTS (SELECT 1 FROM bulletin_entries e WHERE e.audience = $1 AND e.token = t.id)
    """

  private static let newOfGroup: StaticString = """
    SELECT t.id, t.expires FROM group_devices g JOIN tokens t ON t.device = g.device JOIN devices d ON d.id = t.device
    WHERE g.audience = $1 AND g.position = 0 AND t.revoked IS NOT NULL AND t.signer = $2 AND t.expires > $3
      AND t.generation >= d.generation
      AND NOT EXISTS (SELECT 1 FROM bulletin_entries e WHERE e.audience = $1 AND e.token = t.id)
    """

  /// Returns the generation of a device if it is above what the key's bulletins said, and excludes anything.
  ///
  /// - Parameter isPresent: Whether the key signs now. Then tokens may exist that a restored service does not know.
  private func newGeneration(of device: DeviceID, _ values: [Value], isPresent: Bool) throws(FleetFault) -> UInt64? {
    guard let row = try row("SELECT generation FROM devices WHERE id = $1", .copying(device.bytes)) else {
      throw .corrupt
    }
    let generation = try decoding { () throws(SQLFault) in try row.unsigned(0) }
    let said = try number(
      "SELECT coalesce(max(generation), 1) FROM bulletins WHERE audience = $1 AND issuer = $2", values[0], values[1])
    guard generation > said else { return nil }
    if isPresent { return generation }
    let excluded = try rows(
      "SELECT id FROM tokens WHERE device = $1 AND signer = $2 AND expires > $3 AND generation < $4 LIMIT 1",
      values: values + [.unsigned(generation)])
    return excluded.isEmpty ? nil : generation
  }
}
