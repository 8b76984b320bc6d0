import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

extension Fleet {
  /// The seconds after which an audience may get the next bulletin.
  package static let bulletinSeconds: UInt64 = 60
  /// The most bulletins in one answer to a courier.
  package static let bulletinLimit = 16
  private static let bulletinByteLimit = 16_384

  /// Returns the bulletins of one answer: the first of some, within the limits.
  package static func answer(_ bulletins: [IssuedBulletin]) -> [IssuedBulletin] {
    var byteCount = 0
    return Array(
      bulletins.prefix(bulletinLimit).prefix { bulletin in
        byteCount += bulletin.bytes.count
        return byteCount <= bulletinByteLimit
      })
  }

  /// Returns what a courier takes to a device: bulletins for it and its groups with higher numbers, the oldest first. News is signed
  /// before, at most once a minute for each audience.
  ///
  /// - Parameters:
  ///   - device: The device. One that is not registered has no bulletins, like one for which there is no news.
  ///   - have: The least number that the device has of its audiences; 0 if it may have none.
  /// - Returns: At most 16 bulletins of at most 16 KiB.
  package func bulletins(for device: DeviceID, above have: UInt64) throws(FleetFault) -> [IssuedBulletin] {
    let found = try read { (session) throws(FleetFault) in try session.bulletinAudiences(of: device) }
    for audience in found {
      guard try read({ (session) throws(FleetFault) in try self.isDue(audience, in: session) }) else { continue }
      try transaction { (session) throws(FleetFault) in try self.signNews(for: audience, in: session) }
    }
    guard !found.isEmpty else { return [] }
    return try read { (session) throws(FleetFault) in
      guard let issuer = try self.keys(in: session).issuer(at: session.now) else { throw .corrupt }
      return try session.mail(for: device, above: have, issuer: issuer.id)
    }
  }

  private func isDue(_ audience: BulletinAudience, in session: FleetSession) throws(FleetFault) -> Bool {
    let row = try session.row("SELECT signed FROM bulletin_audiences WHERE audience = $1", audience.key)
    guard try session.mayFollow(row) else { return false }
    if case .device(let device) = audience.kind, try session.exceedsCapacity(of: device) { return true }
    return try !session.news(for: audience, of: self.keys(in: session)).isEmpty
  }

  /// Signs what is new, and records it before anyone gets it. The row of the audience lets only one process do it at a time.
  private func signNews(for audience: BulletinAudience, in session: FleetSession) throws(FleetFault) {
    guard try session.mayFollow(try session.lockAudience(audience.key)) else { return }
    if case .device(let device) = audience.kind, try session.exceedsCapacity(of: device) {
      try session.raiseGeneration(ofFull: device)
    }
    let news = try session.news(for: audience, of: self.keys(in: session))
    for part in news { try session.sign(part, for: audience) }
    guard !news.isEmpty else { return }
    try session.run(
      "UPDATE bulletin_audiences SET signed = $2 WHERE audience = $1", audience.key, .unsigned(session.now))
  }
}

/// A device or a group of devices that gets bulletins of its own.
struct BulletinAudience {
  enum Kind {
    case device(DeviceID)
    case group
  }

  let id: AudienceID
  let kind: Kind

  /// The value of the column `audience`.
  var key: Value { .copying(id.bytes) }
}

extension FleetSession {
  /// Returns the audiences of a device, the device itself first; none if it is not registered.
  func bulletinAudiences(of device: DeviceID) throws(FleetFault) -> [BulletinAudience] {
    let key = Value.copying(device.bytes)
    guard try row("SELECT id FROM devices WHERE id = $1", key) != nil, let id = AudienceID(device.bytes) else {
      return []
    }
    var audiences = [BulletinAudience(id: id, kind: .device(device))]
    for row in try rows("SELECT audience FROM group_devices WHERE device = $1 ORDER BY position", key) {
      audiences.append(BulletinAudience(id: try audienceID(row, 0), kind: .group))
    }
    return audiences
  }

  func audienceID(_ row: SQLRow, _ column: Int) throws(FleetFault) -> AudienceID {
    let bytes = try decoding { () throws(SQLFault) in try row.bytes(column) }
    guard let id = AudienceID(bytes.span) else { throw .corrupt }
    return id
  }

  /// Lets others that would sign for an audience, or change its minimum versions or orders about keys, wait until the transaction ends.
  /// Returns the column `signed`.
  func lockAudience(_ audience: Value) throws(FleetFault) -> SQLRow? {
    try run(
      "INSERT INTO bulletin_audiences (audience, signed) VALUES ($1, 0) ON CONFLICT (audience) DO NOTHING", audience)
    return try row("SELECT signed FROM bulletin_audiences WHERE audience = $1 FOR UPDATE", audience)
  }

  /// Returns whether a minute has passed since the last bulletin.
  ///
  /// - Parameter row: The column `signed`; nil if there was none.
  fileprivate func mayFollow(_ row: SQLRow?) throws(FleetFault) -> Bool {
    guard let row else { return true }
    let signed = try decoding { () throws(SQLFault) in try row.unsigned(0) }
    return signed + Fleet.bulletinSeconds <= now
  }

  /// Returns whether the device has more revoked tokens than it can keep, and one that a higher generation would exclude.
  ///
  /// It counts what its bulletins have said, although a higher generation excludes it already: the device keeps that until it expires. A
  /// token of a key that ends for the device needs no revocation.
  fileprivate func exceedsCapacity(of device: DeviceID) throws(FleetFault) -> Bool {
    let key = Value.copying(device.bytes)
    guard
      try row(
        """
        SELECT t.id FROM tokens t JOIN devices d ON d.id = t.device
        WHERE t.device = $1 AND t.revoked IS NOT NULL AND t.expires > $2 AND t.generation >= d.generation
          AND NOT EXISTS (SELECT 1 FROM key_orders k WHERE k.kid = t.signer AND k.ended IS NOT NULL
            AND (k.audience = $1 OR k.audience IN (SELECT audience FROM group_devices WHERE device = $1)))
        LIMIT 1
        """, key, .unsigned(now)) != nil
    else { return false }
    let new = try number(
      """
      SELECT count(*) FROM tokens t JOIN devices d ON d.id = t.device
      WHERE t.revoked IS NOT NULL AND t.expires > $2 AND t.generation >= d.generation AND (t.device = $1 OR t.device IN (
          SELECT other.device FROM group_devices own JOIN group_devices other ON other.audience = own.audience
          WHERE own.device = $1 AND other.position = 0))
        AND NOT EXISTS (SELECT 1 FROM bulletin_entries e WHERE e.token = t.id)
        AND NOT EXISTS (SELECT 1 FROM key_orders k WHERE k.kid = t.signer AND k.ended IS NOT NULL
          AND (k.audience = $1 OR k.audience IN (SELECT audience FROM group_devices WHERE device = $1)))
      """, key, .unsigned(now))
    return try keptCount(of: key) + new > capacity(of: key)
  }

  /// Raises the generation of a device that cannot keep all its revoked tokens: every holder needs a new token, and nothing that was
  /// revoked counts.
  fileprivate func raiseGeneration(ofFull device: DeviceID) throws(FleetFault) {
    try run("UPDATE devices SET generation = generation + 1 WHERE id = $1", .copying(device.bytes))
    try log("device.generation", hexadecimal(device), by: .service, "more revoked tokens than the device can keep")
  }

  /// Returns the number of revoked tokens that the bulletins for a device say and that have not expired.
  private func keptCount(of device: Value) throws(FleetFault) -> UInt64 {
    try number(
      """
      SELECT count(*) FROM bulletin_entries
      WHERE (audience = $1 OR audience IN (SELECT audience FROM group_devices WHERE device = $1)) AND until > $2
      """, device, .unsigned(now))
  }

  private func capacity(of device: Value) throws(FleetFault) -> UInt64 {
    guard let row = try row("SELECT capacity FROM device_groups WHERE device = $1", device) else {
      return DeliveryChange.capacities.upperBound
    }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) }
  }

  /// Returns the bulletins for a device, the oldest first, within the limits of one answer.
  ///
  /// A device whose audiences say more than it can keep gets only its own bulletins, which raise the generation for that.
  ///
  /// Of a key that ends for one of its audiences, it gets only what says so: a device that takes that takes no others.
  ///
  /// - Parameter issuer: The key that signs now. Bulletins of another one matter only while the device may see tokens of it, or if they
  ///   introduce or end keys.
  fileprivate func mail(for device: DeviceID, above have: UInt64, issuer: KeyID) throws(FleetFault) -> [IssuedBulletin]
  {
    let key = Value.copying(device.bytes)
    let isFull = try isFull(key)
    let values = [key, .unsigned(have), .copying(issuer.bytes), .unsigned(now), .unsigned(UInt64(Fleet.bulletinLimit))]
    let found = try isFull ? rows(Self.ownMail, values: values) : rows(Self.allMail, values: values)
    var bulletins: [IssuedBulletin] = []
    for row in found { bulletins.append(try bulletin(row)) }
    return Fleet.answer(bulletins)
  }

  private func isFull(_ device: Value) throws(FleetFault) -> Bool {
    let capacity = try capacity(of: device)
    // A look at the few bulletins mostly does instead of one at all entries.
    let most = try number(
      """
      SELECT CAST(coalesce(sum(entries), 0) AS INTEGER) FROM bulletins
      WHERE audience = $1 OR audience IN (SELECT audience FROM group_devices WHERE device = $1)
      """, device)
    guard most > capacity else { return false }
    return try keptCount(of: device) > capacity
  }

  private static let ownMail: StaticString = """
    SELECT b.audience, b.number, b.predecessor, b.issued, b.bytes FROM bulletins b
    WHERE b.audience = $1 AND b.number > $2 AND (b.issuer = $3 OR EXISTS (
        SELECT 1 FROM tokens t WHERE t.device = $1 AND t.signer = b.issuer AND t.expires > $4)
      OR EXISTS (
        SELECT 1 FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.until > $4))
    ORDER BY b.number LIMIT $5
    """

  private static let allMail: StaticString = """
    SELECT b.audience, b.number, b.predecessor, b.issued, b.bytes FROM bulletins b
    WHERE (b.audience = $1 OR b.audience IN (SELECT audience FROM group_devices WHERE device = $1)) AND b.number > $2
      AND (b.issuer = $3 OR EXISTS (
          SELECT 1 FROM tokens t WHERE t.device = $1 AND t.signer = b.issuer AND t.expires > $4)
        OR EXISTS (
          SELECT 1 FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.until > $4))
      AND (NOT EXISTS (
          SELECT 1 FROM bulletin_keys k WHERE k.issuer = b.issuer AND k.kid = b.issuer
            AND (k.audience = $1 OR k.audience IN (SELECT audience FROM group_devices WHERE device = $1)))
        OR EXISTS (
          SELECT 1 FROM bulletin_keys k WHERE k.issuer = b.issuer AND k.kid = b.issuer AND k.audience = b.audience))
    ORDER BY b.number LIMIT $5
    """

  private func bulletin(_ row: SQLRow) throws(FleetFault) -> IssuedBulletin {
    let (number, predecessor, issued, bytes) = try decoding { () throws(SQLFault) in
      (try row.unsigned(1), try row.unsigned(2), try row.unsigned(3), try row.bytes(4))
    }
    let stamp = BulletinStamp(
      number: number, predecessor: predecessor, issuedAt: issued, audience: try audienceID(row, 0))
    return IssuedBulletin(stamp, bytes)
  }
}
