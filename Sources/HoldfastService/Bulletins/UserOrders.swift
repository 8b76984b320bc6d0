import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

/// An order that a device locks or removes one of its users. It counts until an operator withdraws it: each complete set of bulletins, and
/// those of each later key, say it again.
struct UserOrder: Equatable {
  /// The time until which the user is locked, in Unix seconds; 2^53 - 1 for ever, and nil to remove the user.
  let until: UInt64?
  /// A number that rises with each order about the user: the time of the order in Unix seconds, or more.
  let ordered: UInt64

  /// Returns whether the user is not locked any more at a time, in Unix seconds.
  func isOver(at time: UInt64) -> Bool { until.map { $0 <= time } ?? false }
}

extension Fleet {
  /// The most orders about users of one device.
  private static let userOrderLimit: UInt64 = 256

  /// Orders that a device locks or removes a user, also if it was ordered before. The service does not know which users a device has; an
  /// order about another one has no effect.
  ///
  /// - Parameters:
  ///   - until: The time until which the user is locked, in Unix seconds; nil to remove the user.
  /// - Returns: The record of the order.
  /// - Throws: `notFound` if the device is not registered; `conflict` with `pastTime`, or with `tooMany` beyond 256 orders for a device.
  func order(
    _ user: BoundedText<32>, of device: DeviceID, lockedUntil until: UInt64?, by actor: Actor
  ) throws(AdministrationFault) -> JSONValue {
    try changing { (session) throws(AdministrationFault) in
      guard until.map({ $0 > session.now }) ?? true else { throw .conflict(.pastTime) }
      let others = try session.running { (session) throws(FleetFault) in try session.lockOrders(of: device, but: user) }
      guard let others else { throw .notFound }
      guard others < Self.userOrderLimit else { throw .conflict(.tooMany) }
      return try session.running { (session) throws(FleetFault) in
        try session.insertOrder(user, of: device, lockedUntil: until, by: actor)
        guard let record = try session.orderRecord(user, of: device) else { throw .corrupt }
        return record
      }
    }
  }

  /// Withdraws an order. A device that has the bulletin keeps the user locked or removed.
  ///
  /// - Returns: The record of the order.
  /// - Throws: `notFound` if there is no such order.
  func forgetOrder(
    about user: BoundedText<32>, of device: DeviceID, by actor: Actor
  ) throws(AdministrationFault) -> JSONValue {
    try changing { (session) throws(AdministrationFault) in
      let record = try session.running { (session) throws(FleetFault) -> JSONValue? in
        _ = try session.row("SELECT id FROM devices WHERE id = $1 FOR UPDATE", .copying(device.bytes))
        guard let record = try session.orderRecord(user, of: device) else { return nil }
        try session.run(
          "DELETE FROM user_orders WHERE device = $1 AND username = $2", .copying(device.bytes),
          .text(user.description))
        try session.log("device.forget-user", hexadecimal(device), by: actor, user.description)
        return record
      }
      guard let record else { throw .notFound }
      return record
    }
  }

  /// Returns a page of orders: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - device: The device; nil for all.
  ///   - after: The key of the page before.
  ///   - limit: The number of records.
  func userOrderPage(
    of device: DeviceID?, after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    let values = try Self.start(after) + [.unsigned(limit + 1)] + (device.map { [.copying($0.bytes)] } ?? [])
    let statement = device == nil ? UserOrderListing.all : UserOrderListing.ofDevice
    let found: [JSONValue]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.orderRecords(statement, values) }
    } catch { throw .fleet(error) }
    return Self.page(found, limit: limit) { "\($0["device"]?.text ?? "")-\($0["user"]?.text ?? "")" }
  }
}

/// The statements that list orders: `$1` and `$2` are the key of the one before, `$3` is the number of rows.
private enum UserOrderListing {
  static let all: StaticString = """
    SELECT o.username, o.until, o.ordered, o.device, (
      SELECT max(u.number) FROM bulletin_users u
      WHERE u.audience = o.device AND u.username = o.username AND u.ordered >= o.ordered)
    FROM user_orders o WHERE (o.device, o.username) > ($1, $2) ORDER BY o.device, o.username LIMIT $3
    """

  /// Those for the device `$4`.
  static let ofDevice: StaticString = """
    SELECT o.username, o.until, o.ordered, o.device, (
      SELECT max(u.number) FROM bulletin_users u
      WHERE u.audience = o.device AND u.username = o.username AND u.ordered >= o.ordered)
    FROM user_orders o WHERE (o.device, o.username) > ($1, $2) AND o.device = $4 ORDER BY o.username LIMIT $3
    """

  /// That about the user `$2` of the device `$1`.
  static let one: StaticString = """
    SELECT o.username, o.until, o.ordered, o.device, (
      SELECT max(u.number) FROM bulletin_users u
      WHERE u.audience = o.device AND u.username = o.username AND u.ordered >= o.ordered)
    FROM user_orders o WHERE o.device = $1 AND o.username = $2
    """
}

extension FleetSession {
  /// Returns the orders for a device that the bulletins of a key do not say yet.
  ///
  /// - Parameter key: The values of the columns `audience` and `issuer`.
  func newOrders(for device: DeviceID, _ key: [Value]) throws(FleetFault) -> [BoundedText<32>: UserOrder] {
    try orders(
      """
      SELECT o.username, o.until, o.ordered FROM user_orders o
      WHERE o.device = $1 AND (o.until IS NULL OR o.until > $3) AND NOT EXISTS (
        SELECT 1 FROM bulletin_users u
        WHERE u.audience = $1 AND u.issuer = $2 AND u.username = o.username AND u.ordered >= o.ordered)
      """, key)
  }

  /// Returns the orders for a device that the bulletins of a key say and that still count.
  ///
  /// - Parameter key: The values of the columns `audience` and `issuer`.
  func saidOrders(for device: DeviceID, _ key: [Value]) throws(FleetFault) -> [BoundedText<32>: UserOrder] {
    try orders(
      """
      SELECT o.username, o.until, o.ordered FROM user_orders o
      WHERE o.device = $1 AND (o.until IS NULL OR o.until > $3) AND EXISTS (
        SELECT 1 FROM bulletin_users u
        WHERE u.audience = $1 AND u.issuer = $2 AND u.username = o.username AND u.ordered >= o.ordered)
      """, key)
  }

  private func orders(_ sql: StaticString, _ key: [Value]) throws(FleetFault) -> [BoundedText<32>: UserOrder] {
    var orders: [BoundedText<32>: UserOrder] = [:]
    for row in try rows(sql, values: key + [.unsigned(now)]) {
      let (user, order) = try userOrder(row)
      orders[user] = order
    }
    return orders
  }

  /// Reads the columns username, until and ordered.
  func userOrder(_ row: SQLRow) throws(FleetFault) -> (user: BoundedText<32>, order: UserOrder) {
    let text = try decoding { () throws(SQLFault) in try row.text(0) }
    guard let user = BoundedText<32>(text) else { throw .corrupt }
    let (until, ordered) = try decoding { () throws(SQLFault) in (try row.optionalUnsigned(1), try row.unsigned(2)) }
    return (user, UserOrder(until: until, ordered: ordered))
  }

  /// Locks a device's record, deletes the orders for it that are over, and returns the number of those about other users; nil if the device
  /// is not registered.
  fileprivate func lockOrders(of device: DeviceID, but user: BoundedText<32>) throws(FleetFault) -> UInt64? {
    let key = Value.copying(device.bytes)
    guard try row("SELECT id FROM devices WHERE id = $1 FOR UPDATE", key) != nil else { return nil }
    try run("DELETE FROM user_orders WHERE device = $1 AND until <= $2", key, .unsigned(now))
    return try number(
      "SELECT count(*) FROM user_orders WHERE device = $1 AND username <> $2", key, .text(user.description))
  }

  fileprivate func insertOrder(
    _ user: BoundedText<32>, of device: DeviceID, lockedUntil until: UInt64?, by actor: Actor
  ) throws(FleetFault) {
    let (key, name) = (Value.copying(device.bytes), Value.text(user.description))
    // Bulletins may name an order that was withdrawn.
    let last = try number(
      """
      SELECT coalesce(max(ordered), 0) FROM (
        SELECT ordered FROM user_orders WHERE device = $1 AND username = $2
        UNION ALL SELECT ordered FROM bulletin_users WHERE audience = $1 AND username = $2
      ) orders
      """, key, name)
    try run(
      """
      INSERT INTO user_orders (device, username, until, ordered) VALUES ($1, $2, $3, $4)
      ON CONFLICT (device, username) DO UPDATE SET until = excluded.until, ordered = excluded.ordered
      """, key, name, .optional(until), .unsigned(max(now, last + 1)))
    guard let until else {
      return try log("device.remove-user", hexadecimal(device), by: actor, user.description)
    }
    let end = until == maximumInteger ? "" : " until \(Timestamp(unixSeconds: until))"
    try log("device.lock-user", hexadecimal(device), by: actor, "\(user)\(end)")
  }

  fileprivate func orderRecord(_ user: BoundedText<32>, of device: DeviceID) throws(FleetFault) -> JSONValue? {
    try orderRecords(UserOrderListing.one, [.copying(device.bytes), .text(user.description)]).first
  }

  fileprivate func orderRecords(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue] {
    var records: [JSONValue] = []
    for row in try rows(sql, values: values) {
      let (user, order) = try userOrder(row)
      let (device, number) = try decoding { () throws(SQLFault) in (try row.bytes(3), try row.optionalUnsigned(4)) }
      let until = order.until.flatMap { $0 == maximumInteger ? nil : $0 }
      records.append(
        .object([
          ("device", .string(hexadecimal(device.span))), ("user", .string(user.description)),
          ("action", .string(order.until == nil ? "remove" : "lock")),
          ("until", until.map { .integer($0) } ?? .null), ("ordered", .integer(order.ordered)),
          ("bulletin", number.map { .integer($0) } ?? .null),
        ]))
    }
    return records
  }
}

extension AdministrationOperation {
  /// The operations for orders about users of devices.
  static let userOrders: [AdministrationOperation] = [
    AdministrationOperation(
      "listUserOrders", .get, "/user-orders", .read, "Lists the users that devices are to lock or to remove.",
      query: paging + [Schema.Property("device", .hexadecimal(digitCount: 32), "Only users of this device.")],
      answer: .page(of: record)
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.userOrderPage(
        of: request.query.member("device")?.value.text.flatMap { fixedBytes(hexadecimal: $0) },
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "lockDeviceUser", .post, "/devices/{id}/lock-user", .revoke,
      "Locks a user of a device with the next bulletin, which only the device can read. Microcontrollers refuse it.",
      body: [
        user, Schema.Property("until", .time, "The time until which the user is locked; for ever if missing."), reason,
      ], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.order(
        request.required("user"), of: request.id(),
        lockedUntil: request.body.member("until")?.value.number ?? maximumInteger, by: request.actor())
    },
    AdministrationOperation(
      "removeDeviceUser", .post, "/devices/{id}/remove-user", .revoke,
      """
      Removes a user of a device, with all authenticators, with the next bulletin, which only the device can read. Microcontrollers \
      refuse it.
      """, body: [user, reason], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.order(request.required("user"), of: request.id(), lockedUntil: nil, by: request.actor())
    },
    AdministrationOperation(
      "forgetDeviceUser", .post, "/devices/{id}/forget-user", .admin,
      "Withdraws the order to lock or to remove a user. What the device has done already stays.",
      body: [user, reason], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.forgetOrder(about: request.required("user"), of: request.id(), by: request.actor())
    },
  ]

  private static let user = Schema.Property(
    "user", .text(1...32), required: true, "The name of the user at the device.")

  private static let reason = Schema.Property(
    "reason", .text(1...255), "The reason, which the log of changes keeps.")

  private static let record = Schema.named(
    "UserOrder",
    .object([
      Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
      Schema.Property("user", .text(1...32), required: true, "The name of the user at the device."),
      Schema.Property("action", .choice(["lock", "remove"]), required: true, "The action of the device."),
      Schema.Property(
        "until", .nullable(.time), required: true, "The time until which the user is locked; null for ever."),
      Schema.Property("ordered", .time, required: true, "The time of the order."),
      Schema.Property(
        "bulletin", .nullable(.anyInteger), required: true,
        "The number of the newest bulletin that says so; null before a courier asked for one."),
    ]))
}
