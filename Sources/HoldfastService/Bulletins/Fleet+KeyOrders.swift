import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The wish of an operator that devices trust a key.
struct KeyIntroduction {
  /// The key, which signs already or will sign.
  let key: KeyID
  /// The key that introduces it; nil for the one that introduced the key that signs now, or else that one.
  var introducer: KeyID?
  /// The time from which it is trusted, in Unix seconds; nil for the present time.
  var from: UInt64?
  /// The time from which it is no longer trusted, in Unix seconds.
  let until: UInt64
}

/// The orders about keys, which bulletins bring to devices.
extension Fleet {
  /// The most introductions by one key for one device or group that are not over.
  private static let introductionLimit = ChainContents.introducedLimit

  /// Introduces a key of the service to devices. The same introduction again changes nothing, and another one for the same key is possible
  /// as long as no bulletin says the first: a device keeps the times that it was told first.
  ///
  /// - Returns: The record of the order.
  /// - Throws: `notFound` if the device is not registered, no device is in the group, or one of the keys signs no measurement tokens;
  ///   `conflict` with `pastTime`, `cannotIntroduce`, `endedKey`, `introducedKey`, or `tooMany`.
  func introduce(
    _ wish: KeyIntroduction, to target: BulletinTarget, by actor: Actor
  ) throws(AdministrationFault) -> JSONValue {
    let audience = try target.audience()
    return try changing { (session) throws(AdministrationFault) in
      let (keys, orders) = try self.lockKeys(for: target, audience, in: session)
      let key = try keys.issuer(named: wish.key)
      let usual = try keys.introducer(orders, at: session.now)
      let introducer = try keys.issuer(named: wish.introducer ?? usual)
      guard introducer.id != key.id, introducer.active <= session.now else { throw .conflict(.cannotIntroduce) }
      guard orders.ended.isDisjoint(with: [key.id, introducer.id]) else { throw .conflict(.endedKey) }
      let known = orders.order(about: key.id)?.introduction
      let from = wish.from ?? known?.key.from ?? session.now
      guard wish.until > max(from, session.now, key.active) else { throw .conflict(.pastTime) }
      let introduction = KeyOrder.Introduction(
        introducer: introducer.id, key: IntroducedKey(point: key.key.publicPoint, from: from, until: wish.until))
      if introduction != known {
        try Self.check(known, of: key.id, audience, in: session)
        let others = orders.introductions(by: introducer.id, after: session.now).filter { $0.id != key.id }
        guard others.count < Self.introductionLimit else { throw .conflict(.tooMany) }
      }
      return try session.running { (session) throws(FleetFault) in
        if introduction != known {
          try session.setIntroduction(introduction, of: key.id, for: target, audience, by: actor)
        }
        return try session.keyOrderRecord(key.id, audience)
      }
    }
  }

  /// Refuses another introduction of a key that a bulletin has introduced.
  private static func check(
    _ known: KeyOrder.Introduction?, of key: KeyID, _ audience: AudienceID, in session: FleetSession
  ) throws(AdministrationFault) {
    guard let known else { return }
    // Devices that were told keep the key without trusting it.
    guard known.key.until > session.now else { throw .conflict(.introducedKey) }
    let said = try session.running { (session) throws(FleetFault) in
      try session.saidKeys([.copying(audience.bytes), .copying(known.introducer.bytes)])
    }
    guard said[key]?.introduced == nil else { throw .conflict(.introducedKey) }
  }

  /// Ends a key of the service at devices, for ever. The same order again changes nothing.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - target: The device or the group.
  ///   - withoutSuccessor: Whether it ends although the service did not introduce the key that signs now to these devices.
  ///   - actor: The operator.
  /// - Returns: The record of the order.
  /// - Throws: `notFound` as for an introduction; `conflict` with `noSuccessor`.
  func end(
    _ key: KeyID, at target: BulletinTarget, withoutSuccessor: Bool, by actor: Actor
  ) throws(AdministrationFault) -> JSONValue {
    let audience = try target.audience()
    return try changing { (session) throws(AdministrationFault) in
      let (keys, orders) = try self.lockKeys(for: target, audience, in: session)
      _ = try keys.issuer(named: key)
      let isNew = orders.order(about: key)?.isEnded != true
      guard !isNew || withoutSuccessor || keys.hasSuccessor(of: key, orders, at: session.now) else {
        throw .conflict(.noSuccessor)
      }
      return try session.running { (session) throws(FleetFault) in
        if isNew { try session.setEnd(of: key, for: target, audience, by: actor) }
        return try session.keyOrderRecord(key, audience)
      }
    }
  }

  /// Lets others that would change the orders for an audience, or sign for it, wait, and returns its orders with the keys of the service.
  private func lockKeys(
    for target: BulletinTarget, _ audience: AudienceID, in session: FleetSession
  ) throws(AdministrationFault) -> (keys: FleetKeys, orders: KeyOrders) {
    let key = Value.copying(audience.bytes)
    let isKnown = try session.running { (session) throws(FleetFault) in try session.exists(target, key) }
    guard isKnown else { throw .notFound }
    return try session.running { (session) throws(FleetFault) in
      _ = try session.lockAudience(key)
      return (try self.keys(in: session), try session.keyOrders(for: audience))
    }
  }

  /// Returns a page of orders about keys: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - device: The device, to which those of its groups apply, too; nil for all.
  ///   - after: The key of the page before.
  ///   - limit: The number of records.
  func keyOrderPage(of device: DeviceID?, after: String?, limit: UInt64) throws(AdministrationFault) -> JSONValue {
    var start: [Value] = [.bytes([]), .bytes([])]
    if let after {
      let parts = after.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, let audience: AudienceID = fixedBytes(hexadecimal: String(parts[0])),
        let key: KeyID = fixedBytes(hexadecimal: String(parts[1]))
      else { throw .notFound }
      start = [.copying(audience.bytes), .copying(key.bytes)]
    }
    let values = start + [.unsigned(limit + 1)] + (device.map { [.copying($0.bytes)] } ?? [])
    let statement = device == nil ? KeyOrderListing.all : KeyOrderListing.ofDevice
    let found: [JSONValue]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.keyOrderRecords(statement, values) }
    } catch { throw .fleet(error) }
    return Self.page(found, limit: limit) { "\($0["audience"]?.text ?? "")-\($0["key"]?.text ?? "")" }
  }
}

extension FleetKeys {
  /// Returns a key that signs measurement tokens, or will.
  ///
  /// - Throws: `notFound`.
  fileprivate func issuer(named id: KeyID) throws(AdministrationFault) -> Issuer {
    guard let issuer = issuers.first(where: { $0.id == id }) else { throw .notFound }
    return issuer
  }

  /// Returns the key that introduces others unless an operator names one: policies name a key that introduced others before.
  ///
  /// - Throws: `notFound` if none signs yet.
  fileprivate func introducer(_ orders: KeyOrders, at now: UInt64) throws(AdministrationFault) -> KeyID {
    guard let present = issuer(at: now) else { throw .notFound }
    var introducer = present.id
    for _ in issuers {
      let before = orders.all.first { $0.id == introducer }?.introduction?.introducer
      guard let before, !orders.ended.contains(before) else { break }
      introducer = before
    }
    return introducer
  }

  /// Returns whether devices that lose a key have the one that signs now, as far as the service knows: it is the older one of both, without
  /// which they would not have got the other, or was introduced to them.
  fileprivate func hasSuccessor(of key: KeyID, _ orders: KeyOrders, at now: UInt64) -> Bool {
    guard let present = issuer(at: now), present.id != key, !orders.ended.contains(present.id) else { return false }
    let places = [present.id, key].map { id in issuers.firstIndex { $0.id == id } ?? 0 }
    if places[0] < places[1] { return true }
    return orders.all.contains { $0.id == present.id && ($0.introduction?.key.until ?? 0) > now }
  }
}

/// The statements that list orders about keys: `$1` and `$2` are the key of the one before, `$3` is the number of rows.
private enum KeyOrderListing {
  static let all: StaticString = """
    SELECT o.audience, o.kid, o.introducer, o.begins, o.until, o.introduced, o.ended, (
      SELECT max(k.number) FROM bulletin_keys k
      WHERE k.audience = o.audience AND k.kid = o.kid AND (o.ended IS NULL OR k.ends = 1))
    FROM key_orders o WHERE (o.audience, o.kid) > ($1, $2) ORDER BY o.audience, o.kid LIMIT $3
    """

  /// Those that apply to the device `$4`.
  static let ofDevice: StaticString = """
    SELECT o.audience, o.kid, o.introducer, o.begins, o.until, o.introduced, o.ended, (
      SELECT max(k.number) FROM bulletin_keys k
      WHERE k.audience = o.audience AND k.kid = o.kid AND (o.ended IS NULL OR k.ends = 1))
    FROM key_orders o WHERE (o.audience, o.kid) > ($1, $2)
      AND (o.audience = $4 OR o.audience IN (SELECT audience FROM group_devices WHERE device = $4))
    ORDER BY o.audience, o.kid LIMIT $3
    """

  /// That about the key `$2` for the audience `$1`.
  static let one: StaticString = """
    SELECT o.audience, o.kid, o.introducer, o.begins, o.until, o.introduced, o.ended, (
      SELECT max(k.number) FROM bulletin_keys k
      WHERE k.audience = o.audience AND k.kid = o.kid AND (o.ended IS NULL OR k.ends = 1))
    FROM key_orders o WHERE o.audience = $1 AND o.kid = $2
    """
}

extension FleetSession {
  fileprivate func setIntroduction(
    _ introduction: KeyOrder.Introduction, of key: KeyID, for target: BulletinTarget, _ audience: AudienceID,
    by actor: Actor
  ) throws(FleetFault) {
    let introduced = introduction.key
    try run(
      """
      INSERT INTO key_orders (audience, kid, introducer, point, begins, until, introduced) VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (audience, kid) DO UPDATE SET introducer = excluded.introducer, point = excluded.point,
        begins = excluded.begins, until = excluded.until, introduced = excluded.introduced
      """,
      .copying(audience.bytes), .copying(key.bytes), .copying(introduction.introducer.bytes),
      .copying(introduced.point.bytes), .unsigned(introduced.from), .unsigned(introduced.until), .unsigned(now))
    let times = "from \(Timestamp(unixSeconds: introduced.from)) until \(Timestamp(unixSeconds: introduced.until))"
    try log(
      ("device.introduce-key", "group.introduce-key"), target, by: actor,
      "\(hexadecimal(key)) by \(hexadecimal(introduction.introducer)) \(times)")
  }

  fileprivate func setEnd(
    of key: KeyID, for target: BulletinTarget, _ audience: AudienceID, by actor: Actor
  ) throws(FleetFault) {
    try run(
      """
      INSERT INTO key_orders (audience, kid, ended) VALUES ($1, $2, $3)
      ON CONFLICT (audience, kid) DO UPDATE SET ended = excluded.ended
      """, .copying(audience.bytes), .copying(key.bytes), .unsigned(now))
    try log(("device.end-key", "group.end-key"), target, by: actor, hexadecimal(key))
  }

  fileprivate func keyOrderRecord(_ key: KeyID, _ audience: AudienceID) throws(FleetFault) -> JSONValue {
    let values: [Value] = [.copying(audience.bytes), .copying(key.bytes)]
    guard let record = try keyOrderRecords(KeyOrderListing.one, values).first else { throw .corrupt }
    return record
  }

  fileprivate func keyOrderRecords(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue] {
    var records: [JSONValue] = []
    for row in try rows(sql, values: values) {
      let audience = try audienceID(row, 0)
      let name = try audienceName(audience)
      let record = try decoding { () throws(SQLFault) in try Self.keyOrderRecord(row, audience, name) }
      records.append(record)
    }
    return records
  }

  private static func keyOrderRecord(
    _ row: SQLRow, _ audience: AudienceID, _ name: String
  ) throws(SQLFault) -> JSONValue {
    let (key, introducer) = (try row.bytes(1), try row.optionalBytes(2))
    var members: [(String, JSONValue)] = [
      ("audience", .string(hexadecimal(audience))), ("for", .string(name)), ("key", .string(hexadecimal(key.span))),
      ("introducer", introducer.map { .string(hexadecimal($0.span)) } ?? .null),
    ]
    for (index, member) in ["from", "until", "introduced", "ended", "bulletin"].enumerated() {
      members.append((member, try row.optionalUnsigned(3 + index).map { .integer($0) } ?? .null))
    }
    return .object(members)
  }
}
