import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

/// The statements that list revoked tokens: `$1` is the id of the one before, `$2` the number of rows, `$3` the filter's value.
enum ReachListing {
  static let all: StaticString = """
    SELECT t.id, t.device, t.prover, t.revoked, t.generation FROM tokens t
    WHERE t.id > $1 AND t.revoked IS NOT NULL ORDER BY t.id LIMIT $2
    """

  static let ofProver: StaticString = """
    SELECT t.id, t.device, t.prover, t.revoked, t.generation FROM tokens t
    WHERE t.id > $1 AND t.prover = $3 AND t.revoked IS NOT NULL ORDER BY t.id LIMIT $2
    """

  static let ofToken: StaticString = """
    SELECT t.id, t.device, t.prover, t.revoked, t.generation FROM tokens t
    WHERE t.id > $1 AND t.id = $3 AND t.revoked IS NOT NULL ORDER BY t.id LIMIT $2
    """
}

extension Fleet {
  /// Returns a page of revoked tokens with the bulletin that says so, and the time from which the device knows it, as far as its audit log
  /// says: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - statement: A statement of ``ReachListing``.
  ///   - filter: Its third parameter; none if it has only two.
  ///   - after: The last id of the page before.
  ///   - limit: The number of tokens.
  func reachPage(
    _ statement: StaticString, filter: [Value], after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    var start: [UInt8] = []
    if let after {
      guard let id = bytes(hexadecimal: after) else { throw .notFound }
      start = id
    }
    let values = [.bytes(start), .unsigned(limit + 1)] + filter
    let found: [JSONValue]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.reach(statement, values) }
    } catch { throw .fleet(error) }
    return Self.page(found, limit: limit) { $0["token"]?.text }
  }
}

/// A bulletin that a device says it has taken.
private struct TakenBulletin {
  let audience: String
  let number: UInt64
  /// The time by the device's clock.
  let moment: UInt64
}

extension FleetSession {
  /// The number of entries of a device's log about bulletins that are read, the newest ones.
  private static let takenLimit: UInt64 = 1000

  fileprivate func reach(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue] {
    var taken: [DeviceID: [TakenBulletin]] = [:]
    var items: [JSONValue] = []
    for row in try rows(sql, values: values) {
      let (id, device, prover) = try decoding { () throws(SQLFault) in
        (try row.bytes(0), try row.bytes(1), try row.bytes(2))
      }
      let (revoked, generation) = try decoding { () throws(SQLFault) in (try row.unsigned(3), try row.unsigned(4)) }
      guard let deviceID = DeviceID(device.span) else { throw .corrupt }
      if taken[deviceID] == nil { taken[deviceID] = try takenBulletins(by: deviceID) }
      let firsts = try firstNumbers(of: id, device, generation)
      let known = taken[deviceID]?.filter { bulletin in firsts[bulletin.audience].map { $0 <= bulletin.number } ?? false
      }
      .map(\.moment).min()
      items.append(
        .object([
          ("token", .string(hexadecimal(id.span))), ("device", .string(hexadecimal(device.span))),
          ("prover", .string(hexadecimal(prover.span))), ("revoked", .integer(revoked)),
          ("bulletin", firsts.values.min().map { .integer($0) } ?? .null),
          ("known", known.map { .integer($0) } ?? .null),
        ]))
    }
    return items
  }

  /// Returns the number of the first bulletin that revoked a token, for each audience by its id. Later ones, with which it was merged, say
  /// the same to a device that did not have it.
  private func firstNumbers(
    of token: [UInt8], _ device: [UInt8], _ generation: UInt64
  ) throws(FleetFault) -> [String: UInt64] {
    var found = try rows(
      """
      SELECT audience, number FROM first_revocations WHERE token = $1
      UNION ALL SELECT e.audience, e.number FROM bulletin_entries e WHERE e.token = $1 AND NOT EXISTS (
        SELECT 1 FROM first_revocations f WHERE f.token = e.token AND f.audience = e.audience)
      """, .bytes(token))
    if found.isEmpty {
      // A higher generation excludes the token.
      found = try rows(
        "SELECT audience, number FROM bulletins WHERE audience = $1 AND generation > $2 ORDER BY number LIMIT 1",
        .bytes(device), .unsigned(generation))
    }
    var numbers: [String: UInt64] = [:]
    for row in found {
      let (audience, number) = try decoding { () throws(SQLFault) in (try row.bytes(0), try row.unsigned(1)) }
      numbers[hexadecimal(audience.span)] = number
    }
    return numbers
  }

  private func takenBulletins(by device: DeviceID) throws(FleetFault) -> [TakenBulletin] {
    var taken: [TakenBulletin] = []
    for row in try rows(
      "SELECT moment, details FROM audits WHERE device = $1 AND event = 'bulletin' ORDER BY number DESC LIMIT $2",
      .copying(device.bytes), .unsigned(Self.takenLimit))
    {
      let (moment, text) = try decoding { () throws(SQLFault) in (try row.unsigned(0), try row.text(1)) }
      let details = try? JSONValue(parsing: Array(text.utf8), byteLimit: 1 << 16)
      guard let audience = details?["audience"]?.text, let number = details?["number"]?.text.flatMap({ UInt64($0) })
      else { continue }
      taken.append(TakenBulletin(audience: audience, number: number, moment: moment))
    }
    return taken
  }
}
