import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

extension Fleet {
  /// Counts issued tokens and refusals by day: `{"days": [{"day": Unix seconds, "issued": n, "refused": {reason: n}}]}`.
  func statistics(days: UInt64) throws(AdministrationFault) -> JSONValue {
    do throws(FleetFault) {
      return try read { (session) throws(FleetFault) in
        let first = session.now / 86_400 * 86_400 - min(session.now, (days - 1) * 86_400)
        let rows = try session.rows(
          """
          SELECT hour / 86400 * 86400, name, CAST(sum(count) AS INTEGER) FROM counters WHERE hour >= $1
          GROUP BY 1, 2 ORDER BY 1, 2
          """,
          .unsigned(first))
        var counts: [UInt64: [(name: String, count: UInt64)]] = [:]
        for row in rows {
          let (day, name, count) = try session.decoding { () throws(SQLFault) in
            (try row.unsigned(0), try row.text(1), try row.unsigned(2))
          }
          counts[day, default: []].append((name, count))
        }
        let objects = stride(from: first, through: session.now, by: 86_400).map { day in
          Self.object(day, counts[day] ?? [])
        }
        return .object([("days", .array(objects))])
      }
    } catch { throw .fleet(error) }
  }

  private static func object(_ day: UInt64, _ counts: [(name: String, count: UInt64)]) -> JSONValue {
    let refused = counts.filter { $0.name.hasPrefix("refused.") }
      .map { (String($0.name.dropFirst("refused.".count)), JSONValue.integer($0.count)) }
    let issued = counts.first { $0.name == FleetSession.issued }?.count ?? 0
    return .object([("day", .integer(day)), ("issued", .integer(issued)), ("refused", .object(refused))])
  }
}
