import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The changes for an audience since the last bulletin by one key. A bulletin affects only tokens under its own key.
struct BulletinNews {
  let issuer: FleetKeys.Issuer
  /// The contents of the bulletins that follow those before.
  var contents = ChainContents()
  /// Whether they are the last word of the key, which replaces those before.
  var isLastWord = false
}

extension FleetSession {
  /// Returns what changed for an audience, for each key for which something did.
  ///
  /// A token is revoked in the bulletins of its device's first group, or in the device's own if it has no group; but not if the
  /// generation of the device excludes it. Minimum versions are in those of their own audience. Users do not belong to a key, so that
  /// only the key that signs now names them. A key that ends says so, and nothing more.
  func news(for audience: BulletinAudience, of keys: FleetKeys) throws(FleetFault) -> [BulletinNews] {
    var all: [BulletinNews] = []
    let versions = try minimumVersions(of: audience.id)
    let present = keys.issuer(at: now)?.id
    let orders = try keyOrders(for: audience.id)
    for issuer in keys.issuers {
      if orders.ended.contains(issuer.id) {
        if let news = try lastWord(of: issuer, for: audience, orders) { all.append(news) }
        continue
      }
      guard issuer.active <= now else { continue }
      var news = BulletinNews(issuer: issuer)
      let isPresent = issuer.id == present
      let values = [audience.key, .copying(issuer.id.bytes), .unsigned(now)]
      switch audience.kind {
      case .device(let device):
        news.contents.revoked = try revoked(Self.newOfDevice, values)
        news.contents.generation = try newGeneration(of: device, values, isPresent: isPresent)
        if isPresent { news.contents.users = try newOrders(for: device, Array(values.prefix(2))) }
      case .group: news.contents.revoked = try revoked(Self.newOfGroup, values)
      }
      news.contents.versions = try unsaid(versions, for: audience, values, isPresent: isPresent)
      if !orders.all.isEmpty {
        let said = try saidKeys(Array(values.prefix(2)))
        news.contents.keys = orders.unsaid(by: issuer.id, said: said, at: now)
      }
      if !news.contents.isEmpty { all.append(news) }
    }
    return all
  }

  /// Returns the last word of a key that ends for an audience; nil if its bulletins say it, or it ends only for a group of this device.
  private func lastWord(
    of issuer: FleetKeys.Issuer, for audience: BulletinAudience, _ orders: KeyOrders
  ) throws(FleetFault) -> BulletinNews? {
    guard orders.order(about: issuer.id)?.isEnded == true else { return nil }
    let said = try saidKeys([audience.key, .copying(issuer.id.bytes)])
    guard said[issuer.id]?.isEnded != true else { return nil }
    var news = BulletinNews(issuer: issuer, isLastWord: true)
    news.contents.keys = orders.lastWord(of: issuer.id, said: said, at: now)
    return news
  }

  private func revoked(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [ListedToken] {
    var tokens: [ListedToken] = []
    for row in try rows(sql, values: values) { tokens.append(try ListedToken(new: row, in: self)) }
    return tokens
  }

  private static let newOfDevice: StaticString = """
    SELECT t.id, t.issued, t.expires FROM tokens t JOIN devices d ON d.id = t.device
    WHERE t.device = $1 AND t.revoked IS NOT NULL AND t.signer = $2 AND t.expires > $3 AND t.generation >= d.generation
      AND NOT EXISTS (SELECT 1 FROM group_devices g WHERE g.device = $1)
      AND NOT EXISTS (SELECT 1 FROM bulletin_entries e WHERE e.audience = $1 AND e.token = t.id)
    """

  private static let newOfGroup: StaticString = """
    SELECT t.id, t.issued, t.expires FROM group_devices g JOIN tokens t ON t.device = g.device JOIN devices d ON d.id = t.device
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

  /// Returns the minimum versions that the key's bulletins do not say yet.
  ///
  /// - Parameter isPresent: Whether the key signs now. Bulletins of another one say only what concerns tokens that have not expired.
  private func unsaid(
    _ versions: [BoundedText<64>: AppVersion], for audience: BulletinAudience, _ values: [Value], isPresent: Bool
  ) throws(FleetFault) -> [BoundedText<64>: AppVersion] {
    guard !versions.isEmpty else { return [:] }
    var unsaid = versions
    for row in try rows(
      "SELECT subject, major, minor, patch FROM bulletin_versions WHERE audience = $1 AND issuer = $2",
      values: Array(values.prefix(2)))
    {
      let said = try NamedVersion(row, in: self)
      if let version = unsaid[said.subject], version <= said.version { unsaid[said.subject] = nil }
    }
    guard !isPresent, !unsaid.isEmpty else { return unsaid }
    let isDevice = if case .device = audience.kind { true } else { false }
    var subjects: Set<String> = []
    for row in try isDevice ? rows(Self.subjectsOfDevice, values: values) : rows(Self.subjectsOfGroup, values: values) {
      subjects.insert(try decoding { () throws(SQLFault) in try row.text(0) })
    }
    return unsaid.filter { subjects.contains($0.key.description) }
  }

  private static let subjectsOfDevice: StaticString = """
    SELECT DISTINCT subject FROM tokens WHERE device = $1 AND signer = $2 AND expires > $3
    """

  private static let subjectsOfGroup: StaticString = """
    SELECT DISTINCT t.subject FROM group_devices g JOIN tokens t ON t.device = g.device
    WHERE g.audience = $1 AND t.signer = $2 AND t.expires > $3
    """
}
