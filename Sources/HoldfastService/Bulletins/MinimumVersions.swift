import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The minimum versions of apps, which bulletins bring to devices. They only rise, because a device never goes back.
extension Fleet {
  /// The most apps of which one device or group has a minimum version. One bulletin names them all, and those of all groups of a device
  /// are fewer than it can keep.
  private static let minimumVersionLimit = UInt64(BulletinContents.versionLimit)

  /// Raises the minimum version of an app. The one that there is already changes nothing.
  ///
  /// - Parameters:
  ///   - app: The name of the app, as its executables were approved.
  ///   - version: The least version whose tokens count.
  ///   - target: The device, or the group of devices.
  /// - Returns: The record of the minimum version.
  /// - Throws: `notFound` if the device is not registered, or no device is in the group; `conflict` with `lowerVersion`,
  ///   `unapprovedVersion` if no approved executable would be left, or `tooMany`.
  func raiseMinimumVersion(
    of app: BoundedText<64>, to version: AppVersion, for target: BulletinTarget, by actor: Actor
  ) throws(AdministrationFault) -> JSONValue {
    let audience = try target.audience()
    let key = Value.copying(audience.bytes)
    return try changing { (session) throws(AdministrationFault) in
      let isKnown = try session.running { (session) throws(FleetFault) in try session.exists(target, key) }
      guard isKnown else { throw .notFound }
      let isApproved = try session.running { (session) throws(FleetFault) in try session.hasApproved(app, version) }
      guard isApproved else { throw .conflict(.unapprovedVersion) }
      let before = try session.running { (session) throws(FleetFault) in
        _ = try session.lockAudience(key)
        return try session.minimumVersions(of: audience)
      }
      let known = before[app]
      guard known.map({ $0 <= version }) ?? true else { throw .conflict(.lowerVersion) }
      guard known != nil || before.count < Self.minimumVersionLimit else { throw .conflict(.tooMany) }
      return try session.running { (session) throws(FleetFault) in
        if known != version { try session.setMinimumVersion(of: app, version, for: target, key, by: actor) }
        let records = try session.versionRecords(MinimumVersionListing.one, [key, .text(app.description)])
        guard let record = records.first else { throw .corrupt }
        return record
      }
    }
  }

  /// Returns a page of minimum versions: `{"items": […], "next": key or null}`.
  ///
  /// - Parameters:
  ///   - device: The device, to which those of its groups apply, too; nil for all.
  ///   - after: The key of the page before.
  ///   - limit: The number of records.
  func minimumVersionPage(
    of device: DeviceID?, after: String?, limit: UInt64
  ) throws(AdministrationFault) -> JSONValue {
    let start = try Self.start(after)
    let values = start + [.unsigned(limit + 1)] + (device.map { [.copying($0.bytes)] } ?? [])
    let statement = device == nil ? MinimumVersionListing.all : MinimumVersionListing.ofDevice
    let found: [JSONValue]
    do throws(FleetFault) {
      found = try read { (session) throws(FleetFault) in try session.versionRecords(statement, values) }
    } catch { throw .fleet(error) }
    return Self.page(found, limit: limit) { "\($0["audience"]?.text ?? "")-\($0["app"]?.text ?? "")" }
  }
}

/// The statements that list minimum versions: `$1` and `$2` are the key of the one before, `$3` is the number of rows.
private enum MinimumVersionListing {
  static let all: StaticString = """
    SELECT m.subject, m.major, m.minor, m.patch, m.audience, m.raised, (
      SELECT max(v.number) FROM bulletin_versions v WHERE v.audience = m.audience AND v.subject = m.subject
        AND v.major = m.major AND v.minor = m.minor AND v.patch = m.patch)
    FROM minimum_versions m WHERE (m.audience, m.subject) > ($1, $2) ORDER BY m.audience, m.subject LIMIT $3
    """

  /// Those that apply to the device `$4`.
  static let ofDevice: StaticString = """
    SELECT m.subject, m.major, m.minor, m.patch, m.audience, m.raised, (
      SELECT max(v.number) FROM bulletin_versions v WHERE v.audience = m.audience AND v.subject = m.subject
        AND v.major = m.major AND v.minor = m.minor AND v.patch = m.patch)
    FROM minimum_versions m WHERE (m.audience, m.subject) > ($1, $2)
      AND (m.audience = $4 OR m.audience IN (SELECT audience FROM group_devices WHERE device = $4))
    ORDER BY m.audience, m.subject LIMIT $3
    """

  /// That of the app `$2` for the audience `$1`.
  static let one: StaticString = """
    SELECT m.subject, m.major, m.minor, m.patch, m.audience, m.raised, (
      SELECT max(v.number) FROM bulletin_versions v WHERE v.audience = m.audience AND v.subject = m.subject
        AND v.major = m.major AND v.minor = m.minor AND v.patch = m.patch)
    FROM minimum_versions m WHERE m.audience = $1 AND m.subject = $2
    """
}

/// A minimum version of an app.
struct NamedVersion {
  let subject: BoundedText<64>
  let version: AppVersion

  /// Reads the columns subject, major, minor and patch.
  init(_ row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let text = try session.decoding { () throws(SQLFault) in try row.text(0) }
    guard let subject = BoundedText<64>(text) else { throw .corrupt }
    self.subject = subject
    version = try session.decoding { () throws(SQLFault) in
      AppVersion(major: try row.unsigned(1), minor: try row.unsigned(2), patch: try row.unsigned(3))
    }
  }
}

extension FleetSession {
  /// Returns the minimum versions of an audience, by the names of the apps.
  func minimumVersions(of audience: AudienceID) throws(FleetFault) -> [BoundedText<64>: AppVersion] {
    var versions: [BoundedText<64>: AppVersion] = [:]
    for row in try rows(
      "SELECT subject, major, minor, patch FROM minimum_versions WHERE audience = $1", .copying(audience.bytes))
    {
      let least = try NamedVersion(row, in: self)
      versions[least.subject] = least.version
    }
    return versions
  }

  /// Returns whether an executable of an app is approved whose version is at least this.
  fileprivate func hasApproved(_ app: BoundedText<64>, _ version: AppVersion) throws(FleetFault) -> Bool {
    try row(
      """
      SELECT digest FROM images
      WHERE subject = $1 AND withdrawn IS NULL AND (major, minor, patch) >= ($2, $3, $4) LIMIT 1
      """,
      .text(app.description), .unsigned(version.major), .unsigned(version.minor), .unsigned(version.patch)) != nil
  }

  fileprivate func setMinimumVersion(
    of app: BoundedText<64>, _ version: AppVersion, for target: BulletinTarget, _ audience: Value, by actor: Actor
  ) throws(FleetFault) {
    try run(
      """
      INSERT INTO minimum_versions (audience, subject, major, minor, patch, raised) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (audience, subject) DO UPDATE SET major = excluded.major, minor = excluded.minor,
        patch = excluded.patch, raised = excluded.raised
      """,
      audience, .text(app.description), .unsigned(version.major), .unsigned(version.minor), .unsigned(version.patch),
      .unsigned(now))
    let actions: (StaticString, StaticString) = ("device.minimum-version", "group.minimum-version")
    try log(actions, target, by: actor, "\(app) \(version.text)")
  }

  fileprivate func versionRecords(_ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue] {
    var records: [JSONValue] = []
    for row in try rows(sql, values: values) {
      let least = try NamedVersion(row, in: self)
      let audience = try audienceID(row, 4)
      let (raised, number) = try decoding { () throws(SQLFault) in (try row.unsigned(5), try row.optionalUnsigned(6)) }
      let numbers = [least.version.major, least.version.minor, least.version.patch]
      records.append(
        .object([
          ("audience", .string(hexadecimal(audience))), ("for", .string(try audienceName(audience))),
          ("app", .string(least.subject.description)), ("version", .array(numbers.map { .integer($0) })),
          ("raised", .integer(raised)), ("bulletin", number.map { .integer($0) } ?? .null),
        ]))
    }
    return records
  }
}

extension AdministrationOperation {
  /// The operations for minimum versions.
  static let minimumVersions: [AdministrationOperation] = [
    AdministrationOperation(
      "listMinimumVersions", .get, "/minimum-versions", .read,
      "Lists the minimum versions of apps: all, or those that apply to a device.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), "Only those for this device and its groups.")
      ], answer: .page(of: record)
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.minimumVersionPage(
        of: request.query.member("device")?.value.text.flatMap { fixedBytes(hexadecimal: $0) },
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "raiseMinimumVersion", .post, "/minimum-versions", .revoke,
      """
      Raises the minimum version of an app for a device or a group, for ever: with the next bulletin, devices refuse tokens of older \
      versions. Microcontrollers take no minimum versions, and no later bulletins for the same device or group.
      """,
      body: Schema.Property.bulletinTarget + [
        Schema.Property("app", .text(1...64), required: true, "The name of the app, as its executables were approved."),
        Schema.Property("version", .version, required: true, "The least version that counts, three numbers."),
        Schema.Property("reason", .text(1...255), "The reason, which the log of changes keeps."),
      ], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.raiseMinimumVersion(
        of: request.required("app"), to: request.version("version"), for: request.bulletinTarget(), by: request.actor())
    },
  ]

  private static let record = Schema.named(
    "MinimumVersion",
    .object([
      Schema.Property("audience", .hexadecimal(digitCount: 32), required: true, "The id of the device or the group."),
      Schema.Property("for", .text(0...64), required: true, "The label of the device, or the name of the group."),
      Schema.Property("app", .text(1...64), required: true, "The name of the app."),
      Schema.Property("version", .version, required: true, "The least version that counts."),
      Schema.Property("raised", .time, required: true, "The time at which it was raised."),
      Schema.Property(
        "bulletin", .nullable(.anyInteger), required: true,
        "The number of the newest bulletin that says so; null before a courier asked for one."),
    ]))
}
