import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

extension Fleet {
  /// Returns a page of what happened around a device, the newest first: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - after: The key of the page before.
  ///   - limit: The number of events.
  func timelinePage(
    of device: DeviceID, after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    var start = [maximumInteger, maximumInteger, maximumInteger]
    if let after {
      let parts = after.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
      guard parts.count == 3, parts.allSatisfy({ $0.map { $0 <= maximumInteger } ?? false }) else { throw .notFound }
      start = parts.map { $0 ?? 0 }
    }
    let values = start.map { Value.unsigned($0) }
    var found: [(key: String, event: JSONValue)]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.timeline(of: device, values, limit: limit + 1) }
    } catch { throw .fleet(error) }
    let hasMore = found.count > Int(limit)
    if hasMore { found.removeLast() }
    let next = hasMore ? found.last?.key : nil
    return .object([("items", .array(found.map(\.event))), ("next", next.map { .string($0) } ?? .null)])
  }
}

extension FleetSession {
  /// The sources of a timeline: 1 changes at the service, 2 bulletins that the device says it took, 3 bulletins for the device, from 4 on
  /// those for its groups. `$1` to `$3` are the key of the event before, `$4` and `$5` the device, `$6` is the number of rows.
  private static let timeline: StaticString = """
    SELECT moment, source, number, event, actor, detail FROM (
      SELECT c.moment AS moment, 1 AS source, c.number AS number, c.action AS event, c.actor AS actor, c.detail AS detail
      FROM changes c WHERE c.object = $4 AND (c.action LIKE 'audit.%' OR c.action LIKE 'device.%')
      UNION ALL
      SELECT a.moment, 2, a.number, 'bulletin.taken', '', a.details FROM audits a
      WHERE a.device = $5 AND a.event = 'bulletin'
      UNION ALL
      SELECT b.issued, 3, b.number, 'bulletin.issued', '', CAST(b.entries AS TEXT) FROM bulletins b WHERE b.audience = $5
      UNION ALL
      SELECT b.issued, 4 + g.position, b.number, 'bulletin.issued', '', CAST(b.entries AS TEXT)
      FROM group_devices g JOIN bulletins b ON b.audience = g.audience WHERE g.device = $5
    ) events WHERE (moment, source, number) < ($1, $2, $3) ORDER BY moment DESC, source DESC, number DESC LIMIT $6
    """

  fileprivate func timeline(
    of device: DeviceID, _ start: [Value], limit: UInt64
  ) throws(FleetFault) -> [(key: String, event: JSONValue)] {
    let values = start + [.text(hexadecimal(device)), .copying(device.bytes), .unsigned(limit)]
    var names: [String: String] = [:]
    for (index, audience) in try bulletinAudiences(of: device).enumerated() {
      names[hexadecimal(audience.id)] = index == 0 ? "device" : try audienceName(audience.id)
    }
    let groups = try bulletinAudiences(of: device).dropFirst().map { names[hexadecimal($0.id)] ?? "" }
    var events: [(key: String, event: JSONValue)] = []
    for row in try rows(Self.timeline, values: values) {
      let (moment, source, number) = try decoding { () throws(SQLFault) in
        (try row.unsigned(0), try row.unsigned(1), try row.unsigned(2))
      }
      let (event, actor, detail) = try decoding { () throws(SQLFault) in
        (try row.text(3), try row.text(4), try row.text(5))
      }
      let details: [(String, String)] =
        switch source {
        case 1: [("by", actor), ("detail", detail)].filter { !$0.1.isEmpty }
        case 2: Self.taken(detail, names)
        case 3: [("number", String(number)), ("for", "device"), ("revocations", detail)]
        default:
          [
            ("number", String(number)),
            ("for", groups.indices.contains(Int(source) - 4) ? groups[Int(source) - 4] : ""), ("revocations", detail),
          ]
        }
      let object = JSONValue.object([
        ("time", .integer(moment)), ("event", .string(event)),
        ("details", .object(details.map { ($0.0, .string($0.1)) })),
      ])
      events.append(("\(moment)-\(source)-\(number)", object))
    }
    return events
  }

  /// Returns what the entry of an audit log says about the bulletin that the device took.
  private static func taken(_ text: String, _ names: [String: String]) -> [(String, String)] {
    let details = try? JSONValue(parsing: Array(text.utf8), byteLimit: 1 << 16)
    let audience = details?["audience"]?.text ?? ""
    return [("number", details?["number"]?.text ?? ""), ("for", names[audience] ?? audience)]
  }
}

extension AdministrationOperation {
  /// The form of an event of a timeline.
  static let timelineEvent = Schema.named(
    "TimelineEvent",
    .object([
      Schema.Property(
        "time", .time, required: true, "Its time; that of a bulletin that was taken by the device's clock."),
      Schema.Property("event", .text(1...64), required: true, "Its name, such as bulletin.issued or audit.page."),
      Schema.Property("details", .map(.text(0...4096)), required: true, "What is known about it."),
    ]))
}
