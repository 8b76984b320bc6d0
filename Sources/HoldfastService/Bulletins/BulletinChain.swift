import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastStorage

// The bulletins of one key for one audience are a chain: each is the predecessor of the next, the first one needs none, and a device
// that has the number of one has everything that it and those before it say. Each change keeps that:
//
// - What is new goes to the end.
// - Old bulletins are merged: the new one begins where the first of them began, and has the number of the last. A device with that
//   number has the same as before.
// - When most of the revocations that a chain says have expired, a complete set with higher numbers replaces it.
// - The last word of a key replaces its chain, and nothing follows it.

extension FleetSession {
  /// Signs what is new for an audience, and adds it to the chain.
  func sign(_ news: BulletinNews, for audience: BulletinAudience) throws(FleetFault) {
    let chain = BulletinChain(audience: audience, issuer: news.issuer)
    guard !news.isLastWord else { return try close(chain, saying: news.contents) }
    let (live, expired) = try entryCounts(of: chain)
    if expired > max(live, BulletinChain.expiredLimit) {
      try replace(chain, adding: news)
    } else {
      try append(news.contents, to: chain, after: try lastNumber(of: chain))
      try mergeOld(of: chain)
    }
  }

  private func entryCounts(of chain: BulletinChain) throws(FleetFault) -> (live: UInt64, expired: UInt64) {
    let all = try rows("SELECT count(*) FROM bulletin_entries WHERE audience = $1 AND issuer = $2", values: chain.key)
    let live = try rows(
      "SELECT count(*) FROM bulletin_entries WHERE audience = $1 AND issuer = $2 AND until > $3",
      values: chain.key + [.unsigned(now)])
    guard let all = all.first, let live = live.first else { throw .corrupt }
    return try decoding { () throws(SQLFault) in
      (try live.unsigned(0), try all.unsigned(0) - live.unsigned(0))
    }
  }

  private func lastNumber(of chain: BulletinChain) throws(FleetFault) -> UInt64 {
    try number(
      "SELECT coalesce(max(number), 0) FROM bulletins WHERE audience = $1 AND issuer = $2", chain.key[0], chain.key[1])
  }

  /// Replaces a chain by a complete set of what still matters.
  private func replace(_ chain: BulletinChain, adding news: BulletinNews) throws(FleetFault) {
    var contents = news.contents
    for row in try rows(
      "SELECT token, until FROM bulletin_entries WHERE audience = $1 AND issuer = $2 AND until > $3",
      values: chain.key + [.unsigned(now)])
    {
      contents.revoked.append(try ListedToken(row, in: self))
    }
    contents.versions = try minimumVersions(of: chain.audience.id)
    contents.keys.merge(try saidKeys(chain.key).filter { $0.value.until > now }) { newer, older in
      older.merged(with: newer)
    }
    if case .device(let device) = chain.audience.kind {
      contents.users.merge(try saidOrders(for: device, chain.key)) { newer, _ in newer }
    }
    let said = try rows(
      "SELECT max(generation) FROM bulletins WHERE audience = $1 AND issuer = $2", values: chain.key)
    let before = try said.first.map { (row) throws(FleetFault) in
      try decoding { () throws(SQLFault) in try row.optionalUnsigned(0) }
    }
    contents.generation = contents.generation ?? before ?? nil
    let last = try lastNumber(of: chain)
    _ = try rows("DELETE FROM bulletins WHERE audience = $1 AND issuer = $2", values: chain.key)
    _ = try rows("DELETE FROM bulletin_entries WHERE audience = $1 AND issuer = $2", values: chain.key)
    try forgetNames(of: chain, through: last)
    try append(contents, to: chain, after: 0, above: last)
  }

  /// Replaces a chain by the last word of its key.
  ///
  /// The revoked tokens stay on record with its number: devices keep them, and refuse them all.
  private func close(_ chain: BulletinChain, saying contents: ChainContents) throws(FleetFault) {
    let last = try lastNumber(of: chain)
    _ = try rows("DELETE FROM bulletins WHERE audience = $1 AND issuer = $2", values: chain.key)
    try forgetNames(of: chain, through: last)
    try append(contents, to: chain, after: 0, above: last)
    _ = try rows(
      "UPDATE bulletin_entries SET number = $3 WHERE audience = $1 AND issuer = $2",
      values: chain.key + [.unsigned(try lastNumber(of: chain))])
  }

  /// Signs bulletins that say some contents, and adds them to a chain.
  ///
  /// - Parameters:
  ///   - predecessor: The number of the bulletin before them; 0 if they need none.
  ///   - least: A number that theirs exceed.
  private func append(
    _ contents: ChainContents, to chain: BulletinChain, after predecessor: UInt64, above least: UInt64 = 0
  ) throws(FleetFault) {
    var predecessor = predecessor
    // Numbers are those of the audience, so that keys do not share one.
    let used = try number(
      "SELECT coalesce(max(number), 0) FROM bulletins WHERE audience = $1", chain.audience.key)
    var last = max(used, least)
    for contents in contents.parts() {
      let stamp = BulletinStamp(
        after: last, isComplete: true, milliseconds: now * 1000, audience: chain.audience.id
      ).following(predecessor)
      try insert(ChainPart(stamp: stamp, contents: contents), into: chain)
      (predecessor, last) = (stamp.number, stamp.number)
      for token in contents.revoked {
        try send(
          "INSERT INTO bulletin_entries (audience, token, issuer, number, until) VALUES ($1, $2, $3, $4, $5)",
          chain.key[0], .copying(token.id.bytes), chain.key[1], .unsigned(last), .unsigned(token.until))
        try send(
          """
          INSERT INTO first_revocations (token, audience, number) VALUES ($1, $2, $3) ON CONFLICT (token, audience) DO NOTHING
          """, .copying(token.id.bytes), chain.key[0], .unsigned(last))
      }
    }
  }

  /// Signs a bulletin, and records it with the apps, the keys and the users that it names.
  private func insert(_ part: ChainPart, into chain: BulletinChain) throws(FleetFault) {
    let contents = part.contents
    var device: P256Point?
    if !contents.users.isEmpty, case .device(let id) = chain.audience.kind { device = try devicePoint(id) }
    let stamp = part.stamp
    try run(
      """
      INSERT INTO bulletins (audience, number, issuer, predecessor, issued, entries, generation, bytes)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      """,
      chain.key[0], .unsigned(stamp.number), chain.key[1], .unsigned(stamp.predecessor), .unsigned(stamp.issuedAt),
      .unsigned(UInt64(contents.revoked.count)), .optional(contents.generation),
      .bytes(try part.signed(by: chain.issuer, sealedTo: device)))
    for (subject, version) in contents.versions {
      try send(
        """
        INSERT INTO bulletin_versions (audience, issuer, number, subject, major, minor, patch)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """, chain.key[0], chain.key[1], .unsigned(stamp.number), .text(subject.description),
        .unsigned(version.major), .unsigned(version.minor), .unsigned(version.patch))
    }
    for (key, statement) in contents.keys {
      try send(
        """
        INSERT INTO bulletin_keys (audience, issuer, number, kid, point, begins, until, ends)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """, chain.key[0], chain.key[1], .unsigned(stamp.number), .copying(key.bytes),
        statement.introduced.map { .copying($0.point.bytes) } ?? .null, .optional(statement.introduced?.from),
        .unsigned(statement.until), .unsigned(statement.isEnded ? 1 : 0))
    }
    for (user, order) in contents.users {
      try send(
        """
        INSERT INTO bulletin_users (audience, issuer, number, username, until, ordered) VALUES ($1, $2, $3, $4, $5, $6)
        """, chain.key[0], chain.key[1], .unsigned(stamp.number), .text(user.description), .optional(order.until),
        .unsigned(order.ordered))
    }
  }

  /// Deletes the records of the apps, the keys and the users that the bulletins of a chain up to a number name.
  private func forgetNames(of chain: BulletinChain, through last: UInt64) throws(FleetFault) {
    let range = chain.key + [.unsigned(last)]
    _ = try rows("DELETE FROM bulletin_versions WHERE audience = $1 AND issuer = $2 AND number <= $3", values: range)
    _ = try rows("DELETE FROM bulletin_keys WHERE audience = $1 AND issuer = $2 AND number <= $3", values: range)
    _ = try rows("DELETE FROM bulletin_users WHERE audience = $1 AND issuer = $2 AND number <= $3", values: range)
  }

  /// Merges the bulletins of a chain before its newest ones, if about half as many could say the same.
  private func mergeOld(of chain: BulletinChain) throws(FleetFault) {
    let (live, expired) = try entryCounts(of: chain)
    let old = try rows(
      "SELECT number, issued, generation FROM bulletins WHERE audience = $1 AND issuer = $2 ORDER BY number",
      values: chain.key
    ).dropLast(BulletinChain.newestCount)
    let users = try number(
      "SELECT count(*) FROM bulletin_users WHERE audience = $1 AND issuer = $2", chain.key[0], chain.key[1])
    let needed = Int(live + expired) / BulletinClaims.revokedLimit + Int(users) / BulletinContents.userLimit + 1
    guard old.count >= BulletinChain.newestCount, old.count >= 2 * needed else { return }
    let contents = try contents(of: chain)
    var parts: [ChainPart] = []
    for row in old {
      let (number, issued, generation) = try decoding { () throws(SQLFault) in
        (try row.unsigned(0), try row.unsigned(1), try row.optionalUnsigned(2))
      }
      var next = ChainPart(
        stamp: BulletinStamp(number: number, predecessor: 0, issuedAt: issued, audience: chain.audience.id),
        contents: contents[number] ?? ChainContents())
      next.contents.generation = generation
      if let merged = parts.last?.contents.merged(with: next.contents, at: issued) {
        next.contents = merged
        parts[parts.count - 1] = next
      } else {
        parts.append(next)
      }
    }
    try replaceOld(of: chain, by: parts)
  }

  /// Returns what the bulletins of a chain say, by their numbers, apart from the generation.
  private func contents(of chain: BulletinChain) throws(FleetFault) -> [UInt64: ChainContents] {
    var contents: [UInt64: ChainContents] = [:]
    for row in try rows(
      "SELECT token, until, number FROM bulletin_entries WHERE audience = $1 AND issuer = $2", values: chain.key)
    {
      let number = try decoding { () throws(SQLFault) in try row.unsigned(2) }
      contents[number, default: ChainContents()].revoked.append(try ListedToken(row, in: self))
    }
    for row in try rows(
      "SELECT subject, major, minor, patch, number FROM bulletin_versions WHERE audience = $1 AND issuer = $2",
      values: chain.key)
    {
      let number = try decoding { () throws(SQLFault) in try row.unsigned(4) }
      let least = try NamedVersion(row, in: self)
      contents[number, default: ChainContents()].versions[least.subject] = least.version
    }
    for row in try rows(
      "SELECT kid, point, begins, until, ends, number FROM bulletin_keys WHERE audience = $1 AND issuer = $2",
      values: chain.key)
    {
      let number = try decoding { () throws(SQLFault) in try row.unsigned(5) }
      let (key, statement) = try keyStatement(row)
      contents[number, default: ChainContents()].keys[key] = statement
    }
    for row in try rows(
      "SELECT username, until, ordered, number FROM bulletin_users WHERE audience = $1 AND issuer = $2",
      values: chain.key)
    {
      let number = try decoding { () throws(SQLFault) in try row.unsigned(3) }
      let (user, order) = try userOrder(row)
      contents[number, default: ChainContents()].users[user] = order
    }
    return contents
  }

  private func replaceOld(of chain: BulletinChain, by parts: [ChainPart]) throws(FleetFault) {
    guard let last = parts.last?.stamp.number else { return }
    _ = try rows(
      "DELETE FROM bulletins WHERE audience = $1 AND issuer = $2 AND number <= $3",
      values: chain.key + [.unsigned(last)])
    try forgetNames(of: chain, through: last)
    var predecessor: UInt64 = 0
    for part in parts {
      var part = part
      part.stamp = part.stamp.following(predecessor)
      try insert(part, into: chain)
      let range = chain.key + [.unsigned(predecessor), .unsigned(part.stamp.number)]
      _ = try rows(
        """
        DELETE FROM bulletin_entries WHERE audience = $1 AND issuer = $2 AND number > $3 AND number <= $4 AND until <= $5
        """, values: range + [.unsigned(part.stamp.issuedAt)])
      _ = try rows(
        "UPDATE bulletin_entries SET number = $4 WHERE audience = $1 AND issuer = $2 AND number > $3 AND number <= $4",
        values: range)
      predecessor = part.stamp.number
    }
  }
}

/// The bulletins of one key for one audience.
private struct BulletinChain {
  let audience: BulletinAudience
  let issuer: FleetKeys.Issuer
  /// The values of the columns `audience` and `issuer`.
  let key: [Value]

  /// The number of bulletins at the end that are never merged: couriers that come often need only these.
  static let newestCount = 16
  /// The number of expired revocations with which a chain is left as it is.
  static let expiredLimit: UInt64 = 240

  init(audience: BulletinAudience, issuer: FleetKeys.Issuer) {
    (self.audience, self.issuer, key) = (audience, issuer, [audience.key, .copying(issuer.id.bytes)])
  }
}

/// A bulletin of a chain before it is signed.
private struct ChainPart {
  var stamp: BulletinStamp
  var contents: ChainContents

  /// Signs the bulletin.
  ///
  /// - Parameters:
  ///   - issuer: The key.
  ///   - device: The key of the device to which it is sealed; nil if anyone may read it.
  func signed(by issuer: FleetKeys.Issuer, sealedTo device: P256Point?) throws(FleetFault) -> [UInt8] {
    var (key, random) = (issuer.key, SystemRandom())
    do throws(CryptographyFailure) {
      let writer = try BulletinWriter(of: issuer.key.publicPoint)
      do throws(BulletinFault) {
        return try writer.write(contents.bulletin, stamp, sealedTo: device, key: &key, random: &random)
      } catch { throw CryptographyFailure() }
    } catch { throw .cryptography }
  }
}

extension BulletinStamp {
  /// Returns the stamp with another predecessor.
  fileprivate func following(_ predecessor: UInt64) -> BulletinStamp {
    BulletinStamp(number: number, predecessor: predecessor, issuedAt: issuedAt, audience: audience)
  }
}
