import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

extension Fleet {
  /// Returns a page of bulletins, the newest first: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - statement: A statement of ``BulletinListing``.
  ///   - filter: Its fourth parameter; none if it has only three.
  func bulletinPage(
    _ statement: StaticString, filter: [Value], after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    var start: [Value] = [.unsigned(maximumInteger), .bytes([])]
    if let after {
      let parts = after.split(separator: "-")
      guard parts.count == 2, let number = UInt64(parts[0]), number <= maximumInteger,
        let audience: AudienceID = fixedBytes(hexadecimal: String(parts[1]))
      else { throw .notFound }
      start = [.unsigned(number), .copying(audience.bytes)]
    }
    let values = start + [.unsigned(limit + 1)] + filter
    let found: [JSONValue]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.bulletinRecords(statement, values) }
    } catch { throw .fleet(error) }
    return Self.page(found, limit: limit) { "\($0["number"]?.number ?? 0)-\($0["audience"]?.text ?? "")" }
  }

  /// Returns a page of devices with the newest bulletin for each of their audiences, what they have taken of it as far as their audit
  /// logs say, and when a part of these came last. For the parameters see ``devicePage(silentDays:after:limit:)``.
  func deliveryPage(
    silentDays: UInt64?, after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    let page = try devicePage(silentDays: silentDays, after: after, limit: limit)
    let devices = page["items"]?.elements ?? []
    let items: [JSONValue]
    do throws(FleetFault) {
      items = try read { (session) throws(FleetFault) in try session.deliveries(to: devices) }
    } catch { throw .fleet(error) }
    return .object([("items", .array(items)), ("next", page["next"] ?? .null)])
  }
}

extension Fleet {
  /// Returns a page of devices.
  ///
  /// - Parameters:
  ///   - silentDays: The number of days within which no part of a device's audit log came; nil for all devices.
  ///   - after: The last id of the page before.
  ///   - limit: The number of devices.
  func devicePage(
    silentDays: UInt64? = nil, after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    var moment = maximumInteger
    if let silentDays {
      do throws(FleetFault) {
        let now = try read { (session) throws(FleetFault) in session.now }
        moment = now - min(now, silentDays * 86_400)
      } catch { throw .fleet(error) }
    }
    return try page(.devices, after: after, limit: limit, filters: [.unsigned(moment)])
  }
}

/// The statements that list bulletins: `$1` and `$2` are number and audience of the one before, `$3` is the number of rows.
enum BulletinListing {
  static let all: StaticString = """
    SELECT b.number, b.audience, b.issued, b.predecessor, b.entries, b.generation, b.issuer,
      (SELECT count(*) FROM bulletin_versions v WHERE v.audience = b.audience AND v.issuer = b.issuer AND v.number = b.number),
      (SELECT count(*) FROM bulletin_users u WHERE u.audience = b.audience AND u.issuer = b.issuer AND u.number = b.number),
      (SELECT count(k.point) FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number),
      (SELECT count(*) FROM bulletin_keys k
        WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number AND k.ends = 1)
    FROM bulletins b
    WHERE b.number < $1 OR (b.number = $1 AND b.audience > $2) ORDER BY b.number DESC, b.audience LIMIT $3
    """

  /// Those for the device `$4` and its groups.
  static let ofDevice: StaticString = """
    SELECT b.number, b.audience, b.issued, b.predecessor, b.entries, b.generation, b.issuer,
      (SELECT count(*) FROM bulletin_versions v WHERE v.audience = b.audience AND v.issuer = b.issuer AND v.number = b.number),
      (SELECT count(*) FROM bulletin_users u WHERE u.audience = b.audience AND u.issuer = b.issuer AND u.number = b.number),
      (SELECT count(k.point) FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number),
      (SELECT count(*) FROM bulletin_keys k
        WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number AND k.ends = 1)
    FROM bulletins b
    WHERE (b.number < $1 OR (b.number = $1 AND b.audience > $2))
      AND (b.audience = $4 OR b.audience IN (SELECT audience FROM group_devices WHERE device = $4))
    ORDER BY b.number DESC, b.audience LIMIT $3
    """

  /// Those that revoke a token of the prover `$4`.
  static let ofProver: StaticString = """
    SELECT b.number, b.audience, b.issued, b.predecessor, b.entries, b.generation, b.issuer,
      (SELECT count(*) FROM bulletin_versions v WHERE v.audience = b.audience AND v.issuer = b.issuer AND v.number = b.number),
      (SELECT count(*) FROM bulletin_users u WHERE u.audience = b.audience AND u.issuer = b.issuer AND u.number = b.number),
      (SELECT count(k.point) FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number),
      (SELECT count(*) FROM bulletin_keys k
        WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number AND k.ends = 1)
    FROM bulletins b
    WHERE (b.number < $1 OR (b.number = $1 AND b.audience > $2)) AND EXISTS (
      SELECT 1 FROM tokens t JOIN bulletin_entries e ON e.token = t.id
      WHERE t.prover = $4 AND e.audience = b.audience AND e.number = b.number)
    ORDER BY b.number DESC, b.audience LIMIT $3
    """

  /// Those that revoke the token `$4`.
  static let ofToken: StaticString = """
    SELECT b.number, b.audience, b.issued, b.predecessor, b.entries, b.generation, b.issuer,
      (SELECT count(*) FROM bulletin_versions v WHERE v.audience = b.audience AND v.issuer = b.issuer AND v.number = b.number),
      (SELECT count(*) FROM bulletin_users u WHERE u.audience = b.audience AND u.issuer = b.issuer AND u.number = b.number),
      (SELECT count(k.point) FROM bulletin_keys k WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number),
      (SELECT count(*) FROM bulletin_keys k
        WHERE k.audience = b.audience AND k.issuer = b.issuer AND k.number = b.number AND k.ends = 1)
    FROM bulletins b
    WHERE (b.number < $1 OR (b.number = $1 AND b.audience > $2)) AND EXISTS (
      SELECT 1 FROM bulletin_entries e WHERE e.token = $4 AND e.audience = b.audience AND e.number = b.number)
    ORDER BY b.number DESC, b.audience LIMIT $3
    """
}

extension FleetSession {
  fileprivate func bulletinRecords(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue] {
    var names: [AudienceID: String] = [:]
    var records: [JSONValue] = []
    for row in try rows(sql, values: values) {
      let audience = try audienceID(row, 1)
      if names[audience] == nil { names[audience] = try audienceName(audience) }
      records.append(try bulletinRecord(row, audience, names[audience] ?? ""))
    }
    return records
  }

  private func bulletinRecord(_ row: SQLRow, _ audience: AudienceID, _ name: String) throws(FleetFault) -> JSONValue {
    try decoding { () throws(SQLFault) in
      let issuer = try row.bytes(6)
      return .object([
        ("number", .integer(try row.unsigned(0))), ("audience", .string(hexadecimal(audience))),
        ("for", .string(name)), ("issued", .integer(try row.unsigned(2))),
        ("predecessor", .integer(try row.unsigned(3))), ("revocations", .integer(try row.unsigned(4))),
        ("generation", try row.optionalUnsigned(5).map { .integer($0) } ?? .null),
        ("minimum_versions", .integer(try row.unsigned(7))), ("introduced_keys", .integer(try row.unsigned(9))),
        ("ended_keys", .integer(try row.unsigned(10))), ("users", .integer(try row.unsigned(8))),
        ("signer", .string(hexadecimal(issuer.span))),
      ])
    }
  }

  /// Returns the name of a group, or the label or the id of a device; the id of a group to which no device belongs any more.
  func audienceName(_ audience: AudienceID) throws(FleetFault) -> String {
    let key = Value.copying(audience.bytes)
    if let row = try row("SELECT label FROM devices WHERE id = $1", key) {
      let label = try decoding { () throws(SQLFault) in try row.optionalText(0) }
      return label ?? hexadecimal(audience)
    }
    guard
      let row = try row(
        """
        SELECT s.names, g.position FROM group_devices g JOIN device_groups s ON s.device = g.device
        WHERE g.audience = $1 LIMIT 1
        """, key)
    else { return hexadecimal(audience) }
    let (text, position) = try decoding { () throws(SQLFault) in (try row.text(0), try row.unsigned(1)) }
    let names = CommandList.decode(text) ?? []
    return Int(position) < names.count ? names[Int(position)] : hexadecimal(audience)
  }

  fileprivate func deliveries(to devices: [JSONValue]) throws(FleetFault) -> [JSONValue] {
    var items: [JSONValue] = []
    for device in devices {
      let id: DeviceID? = device["id"]?.text.flatMap { fixedBytes(hexadecimal: $0) }
      guard let id else { throw .corrupt }
      let (newest, taken) = try delivery(to: id, named: device["label"]?.text)
      items.append(
        .object([
          ("device", device["id"] ?? .null), ("newest", .object(newest)), ("taken", .object(taken)),
          ("heard", try heard(from: id).map { .integer($0) } ?? .null),
        ]))
    }
    return items
  }

  /// Returns the time at which a part of a device's audit log came last, in Unix seconds; nil if none came.
  private func heard(from device: DeviceID) throws(FleetFault) -> UInt64? {
    let found = try row(
      """
      SELECT max(received) FROM (
        SELECT received FROM audit_logs WHERE device = $1 UNION ALL SELECT received FROM audit_chains WHERE device = $1
      ) parts
      """, .copying(device.bytes))
    guard let found else { return nil }
    return try decoding { () throws(SQLFault) in try found.optionalUnsigned(0) }
  }

  /// Returns the newest bulletin for each audience of a device, and the newest that the device says it has taken.
  private func delivery(
    to device: DeviceID, named label: String?
  ) throws(FleetFault) -> (newest: [(String, JSONValue)], taken: [(String, JSONValue)]) {
    let reported = try reportedNumbers(of: device)
    var newest: [(String, JSONValue)] = []
    var taken: [(String, JSONValue)] = []
    for audience in try bulletinAudiences(of: device) {
      guard
        let row = try row(
          "SELECT number, issued FROM bulletins WHERE audience = $1 ORDER BY number DESC LIMIT 1", audience.key)
      else { continue }
      let (number, issued) = try decoding { () throws(SQLFault) in (try row.unsigned(0), try row.unsigned(1)) }
      var name = "device"
      if case .group = audience.kind { name = try audienceName(audience.id) }
      let known = reported[hexadecimal(audience.id)]
      newest.append((name, .string("\(number), \(Timestamp(unixSeconds: issued))")))
      taken.append((name, .string(known.map { $0 == String(number) ? "\($0), the newest" : $0 } ?? "not known")))
    }
    return (newest, taken)
  }

  /// Returns the number of the newest bulletin that a device's audit log has for each audience, by the id of the audience.
  private func reportedNumbers(of device: DeviceID) throws(FleetFault) -> [String: String] {
    var numbers: [String: String] = [:]
    for row in try rows(
      "SELECT details FROM audits WHERE device = $1 AND event = 'bulletin' ORDER BY number DESC LIMIT 64",
      .copying(device.bytes))
    {
      let text = try decoding { () throws(SQLFault) in try row.text(0) }
      let details = try? JSONValue(parsing: Array(text.utf8), byteLimit: 1 << 16)
      guard let audience = details?["audience"]?.text, let number = details?["number"]?.text else { continue }
      if numbers[audience] == nil { numbers[audience] = number }
    }
    return numbers
  }
}
