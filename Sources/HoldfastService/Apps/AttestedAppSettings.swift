import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastStorage

/// The settings of operators for apps, at one revision of policy and keys. It contains no secret.
struct AttestedAppSettings: Sendable {
  /// The domains by their names.
  var domains: [String: APIDomain] = [:]
  /// The numbers in the keys of domains with HS256, where they are not 1.
  var domainEpochs: [String: UInt64] = [:]
  /// The pins by domain, in the order of their bytes.
  var pins: [(domain: String, pins: [String])] = []
  /// The revision of the configuration, which rises with each change of domains, pins or features.
  var revision: UInt64 = 1
  /// The revision of the configuration from which pins are forced; 0 for never.
  var forcedPins: UInt64 = 0
  /// The number in the key for messages; a higher one is another key.
  var messageEpoch: UInt64 = 1
  /// The development key as it is sealed; nil if there is none.
  var sealedDevelopmentKey: [UInt8]?

  /// The number in the key of a domain with HS256.
  func domainEpoch(_ name: String) -> UInt64 { domainEpochs[name] ?? 1 }

  /// The audiences of the domains with measurement.
  var audiences: [BoundedText<255>] { domains.values.filter(\.hasMeasurement).map(\.audience) }
}

/// The rows of the table `settings` that belong to apps. The number of each is in the column `revision`.
enum AppSetting: String, CaseIterable {
  case configuration
  case forcedPins = "forced-pins"
  case messageEpoch = "message-epoch"
  /// The value is the sealed key, and empty if there is none; the number is the time at which it was made.
  case developmentKey = "development-key"
  /// The value is the signed rules about the posture of provers.
  case postureRules = "posture-rules"
}

extension FleetSession {
  /// Reads what operators set for apps.
  func appSettings() throws(FleetFault) -> AttestedAppSettings {
    var settings = AttestedAppSettings()
    for row in try rows(
      "SELECT name, audience, algorithm, lifetime, protected, measurement FROM domains ORDER BY name")
    {
      let domain = try domain(row)
      settings.domains[domain.name] = domain
    }
    for row in try rows("SELECT name, epoch FROM domain_secrets") {
      let (name, epoch) = try decoding { () throws(SQLFault) in (try row.text(0), try row.unsigned(1)) }
      settings.domainEpochs[name] = epoch
    }
    for row in try rows("SELECT domain, pin FROM pins ORDER BY domain, pin") {
      let (domain, pin) = try decoding { () throws(SQLFault) in (try row.text(0), try row.text(1)) }
      if settings.pins.last?.domain != domain { settings.pins.append((domain, [])) }
      settings.pins[settings.pins.count - 1].pins.append(pin)
    }
    for row in try rows("SELECT name, value, revision FROM settings") {
      let (name, value, number) = try decoding { () throws(SQLFault) in
        (try row.text(0), try row.bytes(1), try row.unsigned(2))
      }
      switch AppSetting(rawValue: name) {
      case .configuration: settings.revision = number
      case .forcedPins: settings.forcedPins = number
      case .messageEpoch: settings.messageEpoch = number
      case .developmentKey: settings.sealedDevelopmentKey = value.isEmpty ? nil : value
      case .postureRules, nil: break
      }
    }
    return settings
  }

  private func domain(_ row: SQLRow) throws(FleetFault) -> APIDomain {
    let (name, audience, algorithm, lifetime, protected, measurement) = try decoding { () throws(SQLFault) in
      (
        try row.text(0), try row.text(1), try row.text(2), try row.unsigned(3), try row.unsigned(4), try row.unsigned(5)
      )
    }
    guard let audience = BoundedText<255>(audience), let algorithm = APIDomain.Algorithm(rawValue: algorithm) else {
      throw .corrupt
    }
    return APIDomain(
      name: name, audience: audience, algorithm: algorithm, lifetime: lifetime, isProtected: protected == 1,
      hasMeasurement: measurement == 1)
  }

  /// Sets a number, and a value with it.
  func set(_ setting: AppSetting, _ number: UInt64, value: [UInt8] = []) throws(FleetFault) {
    try run(
      """
      INSERT INTO settings (name, value, revision) VALUES ($1, $2, $3)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value, revision = excluded.revision
      """,
      .text(setting.rawValue), .bytes(value), .unsigned(number))
  }

  /// Raises a number that is 1 at first, and returns it. Until the transaction ends, others wait to do so.
  func raise(_ setting: AppSetting) throws(FleetFault) -> UInt64 {
    guard
      let row = try row(
        """
        INSERT INTO settings (name, value, revision) VALUES ($1, $2, 2)
        ON CONFLICT (name) DO UPDATE SET revision = settings.revision + 1
        RETURNING revision
        """,
        .text(setting.rawValue), .bytes([]))
    else { throw .corrupt }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) }
  }

  /// Marks a change of what apps read: there is a newer configuration, and every process reads it anew.
  @discardableResult
  func raiseConfiguration() throws(FleetFault) -> UInt64 {
    try raiseRevision()
    return try raise(.configuration)
  }
}
