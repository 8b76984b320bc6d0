import HoldfastCore
import HoldfastFormats

/// Settings that only some tokens have: those of one app, of one version of it, for one device, or both.
package struct ScopedSettings: Sendable, Equatable {
  /// The app, as its image was approved; nil for every app.
  package let app: BoundedText<64>?
  /// The only version of the app; nil for every version.
  package let version: AppVersion?
  /// The only device; nil for every device.
  package let device: DeviceID?
  /// The settings, in place of those of the policy.
  package var settings: AppSettings

  /// The largest number of such settings in a policy.
  package static let maximumCount = 32
  /// The name of the policy's member.
  package static let memberName = "settings_for"

  /// Creates settings; nil if they are for every app and device, or name a version without an app.
  package init?(app: BoundedText<64>?, version: AppVersion? = nil, device: DeviceID?, settings: AppSettings) {
    guard app != nil || device != nil, version == nil || app != nil else { return nil }
    (self.app, self.version, self.device, self.settings) = (app, version, device, settings)
  }

  /// Returns whether two settings are for the same tokens.
  package func hasScope(of other: ScopedSettings) -> Bool {
    app == other.app && version == other.version && device == other.device
  }

  /// The rank among settings that apply to one token: a device counts more than an app, and a version more than none.
  fileprivate var rank: Int { (device == nil ? 0 : 4) + (app == nil ? 0 : 1) + (version == nil ? 0 : 2) }

  fileprivate func apply(to subject: BoundedText<64>, _ version: AppVersion, _ device: DeviceID) -> Bool {
    (app == nil || app == subject) && (self.version == nil || self.version == version)
      && (self.device == nil || self.device == device)
  }
}

extension ScopedSettings {
  /// Reads `{"app": "lock", "version": [1, 2, 3], "device": "<32 hex digits>", "settings": {…}}`, of which at least app or device
  /// is there.
  ///
  /// - Throws: The first mistake in the member.
  init(_ object: JSONMember) throws(JSONMistake) {
    try object.checkMembers(["app", "version", "device", "settings"])
    let app: BoundedText<64>? = try object.member("app").map { member throws(JSONMistake) in try member.boundedText() }
    var version: AppVersion?
    if let member = object.member("version") {
      var numbers: [UInt64] = []
      for number in try member.elements(count: 3) { numbers.append(try number.integer()) }
      version = AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
    }
    var device: DeviceID?
    if let member = object.member("device") {
      guard let id: DeviceID = fixedBytes(hexadecimal: try member.text(byteCounts: 32...32)) else {
        throw member.mistake(.hexadecimal(digitCount: 32))
      }
      device = id
    }
    let settings = try AppSettings(try object.required("settings"))
    guard let known = ScopedSettings(app: app, version: version, device: device, settings: settings) else {
      throw object.mistake(.form("an object with app, device or both; a version needs its app"))
    }
    self = known
  }

  /// The settings as ``init(_:)`` reads them.
  package var json: JSONValue {
    var members: [(String, JSONValue)] = []
    if let app { members.append(("app", .string(app.description))) }
    if let version {
      members.append(("version", .array([version.major, version.minor, version.patch].map { .integer($0) })))
    }
    if let device { members.append(("device", .string(hexadecimal(device)))) }
    return .object(members + [("settings", settings.json)])
  }
}

extension ServicePolicy {
  /// Reads the member `settings_for`.
  static func scopedSettings(_ policy: JSONMember) throws(JSONMistake) -> [ScopedSettings] {
    guard let member = policy.member(ScopedSettings.memberName) else { return [] }
    let elements = try member.elements()
    guard elements.count <= ScopedSettings.maximumCount else {
      throw member.mistake(.atMost(ScopedSettings.maximumCount))
    }
    var all: [ScopedSettings] = []
    for element in elements {
      let settings = try ScopedSettings(element)
      guard !all.contains(where: { $0.hasScope(of: settings) }) else {
        throw element.mistake(.form("settings for other tokens than those before it"))
      }
      all.append(settings)
    }
    return all
  }

  /// Returns the conditions of a token: the policy's, with the most specific settings.
  package func conditions(of subject: BoundedText<64>, _ version: AppVersion, for device: DeviceID) -> Conditions {
    var conditions = self.conditions
    let applying = scopedSettings.filter { $0.apply(to: subject, version, device) }
    if let settings = applying.max(by: { $0.rank < $1.rank })?.settings { conditions.settings = settings }
    return conditions
  }

  /// Sets settings for some tokens, in place of those that were for the same ones; or removes these.
  ///
  /// - Returns: Whether the policy changed; nil if there would be more than 32.
  package mutating func set(_ settings: ScopedSettings, removing: Bool = false) -> Bool? {
    let index = scopedSettings.firstIndex { $0.hasScope(of: settings) }
    if removing {
      guard let index else { return false }
      scopedSettings.remove(at: index)
    } else if let index {
      guard scopedSettings[index] != settings else { return false }
      scopedSettings[index] = settings
    } else {
      guard scopedSettings.count < ScopedSettings.maximumCount else { return nil }
      scopedSettings.append(settings)
    }
    return true
  }
}
