import HoldfastCore
import HoldfastOpenSSL

/// A measurement for an issuer to approve, with the files and the evidence that follow from it.
public struct Baseline: Sendable {
  /// The configuration, which is stored as `measurement_config.bin`.
  public let configuration: MeasurementConfiguration
  /// The measurement of the app and its host.
  public let measurement: LiveMeasurement
  /// The evidence for the attestation service, authenticated. Anyone who reads it knows the integrity measurement (IM) and DM.
  public let evidence: [UInt8]
  /// The fingerprints that later explain changes.
  public let fingerprints: BaselineFingerprints
}

/// The claims of the app that go into evidence as they are.
private typealias Claims = (
  subject: BoundedText<64>?, version: AppVersion?, properties: [BoundedText<128>], userProperty: BoundedText<128>?
)

extension Measurer {
  /// Takes a baseline of the app and its host as they are now, under a fresh salt; creates the device secret if there is none.
  ///
  /// - Parameters:
  ///   - subject: a claim about the app's name, 1 to 64 bytes; nil for no claim. The service's policy names the app.
  ///   - version: a claim about the app's version; nil for no claim. The service's policy knows the version.
  ///   - properties: the app's properties, at most 16, in any order; each has at least one byte.
  ///   - userProperty: printable ASCII that the app says about its user; nil for nothing.
  ///   - policy: the ways of measuring that the baseline permits or demands for its proofs.
  ///   - clock: the source of the creation time; without a real clock, the time is 0, in 1970.
  ///   - random: the source of the salt.
  /// - Throws: ``MeasurementError`` if a source cannot be read, or there is no randomness.
  public mutating func takeBaseline(
    subject: BoundedText<64>? = nil, version: AppVersion? = nil, properties: [BoundedText<128>] = [],
    userProperty: BoundedText<128>? = nil, policy: MeasurementPolicy = [], clock: borrowing some Clock & ~Copyable,
    random: inout some RandomSource & ~Copyable
  ) throws(MeasurementError) -> Baseline {
    try baseline(
      of: try measure(under: policy.intersection(.treeDigests), makingDeviceSecret: true), subject: subject,
      version: version, properties: properties,
      userProperty: userProperty, policy: policy, clock: clock, random: &random)
  }

  /// Makes a baseline from a recent measurement, under a fresh salt. One measurement serves for the baselines of several
  /// verifiers.
  ///
  /// - Parameters:
  ///   - measurement: every component that Linux has, as ``measure(makingDeviceSecret:)`` returns it.
  ///   - subject: a claim about the app's name, 1 to 64 bytes; nil for no claim.
  ///   - version: a claim about the app's version; nil for no claim.
  ///   - properties: the app's properties, at most 16, in any order; each has at least one byte.
  ///   - userProperty: printable ASCII that the app says about its user; nil for nothing.
  ///   - policy: the ways of measuring that the baseline permits or demands for its proofs.
  ///   - clock: the source of the creation time; without a real clock, the time is 0, in 1970.
  ///   - random: the source of the salt.
  /// - Throws: ``MeasurementError`` if there is no randomness, or the measurement does not fit into evidence.
  public mutating func baseline(
    of measurement: LiveMeasurement, subject: BoundedText<64>? = nil, version: AppVersion? = nil,
    properties: [BoundedText<128>] = [], userProperty: BoundedText<128>? = nil, policy: MeasurementPolicy = [],
    clock: borrowing some Clock & ~Copyable, random: inout some RandomSource & ~Copyable
  ) throws(MeasurementError) -> Baseline {
    keys.warnIfDefault()
    let salt: ConfigurationSalt
    do throws(RandomFailure) { salt = try random.fixedBytes() } catch { throw .cryptography }
    let keyID = try keys.currentID()
    let configuration: MeasurementConfiguration
    do throws(EncodingFault) {
      configuration = try MeasurementConfiguration(
        salt: salt, mpkID: keyID, appIDs: measurement.app.map(\.id), deviceIDs: measurement.device.map(\.id),
        created: clock.unixSeconds() ?? 0, policy: policy)
    } catch {
      throw .evidence(error)
    }
    let claims = (subject, version, properties, userProperty)
    return try baseline(of: try completed(measurement, for: configuration), for: configuration, claims)
  }

  /// Makes an earlier baseline again, with the same evidence, if app and host have not changed since.
  ///
  /// - Parameters:
  ///   - measurement: every component that Linux has, as ``measure(makingDeviceSecret:)`` returns it.
  ///   - configuration: the configuration of the baseline.
  ///   - fingerprints: the fingerprints of the baseline.
  ///   - subject: the claim of the baseline about the app's name.
  ///   - version: the claim of the baseline about the app's version.
  ///   - properties: the app's properties, as they were.
  ///   - userProperty: the user property, as it was.
  /// - Returns: the baseline; nil if a component, the list of components or the current release has changed.
  package mutating func baseline(
    again configuration: MeasurementConfiguration, _ fingerprints: BaselineFingerprints,
    of measurement: LiveMeasurement, subject: BoundedText<64>?, version: AppVersion?,
    properties: [BoundedText<128>] = [], userProperty: BoundedText<128>? = nil
  ) throws(MeasurementError) -> Baseline? {
    let measurement = try completed(measurement, for: configuration)
    guard try keys.currentID() == configuration.mpkID, measurement.app.map(\.id) == configuration.appIDs,
      measurement.device.map(\.id) == configuration.deviceIDs
    else { return nil }
    let claims = (subject, version, properties, userProperty)
    let baseline = try baseline(of: measurement, for: configuration, claims)
    return baseline.fingerprints == fingerprints ? baseline : nil
  }

  private mutating func baseline(
    of measurement: LiveMeasurement, for configuration: MeasurementConfiguration, _ claims: Claims
  ) throws(MeasurementError) -> Baseline {
    let evidence: Evidence
    do throws(EncodingFault) {
      var properties: [BoundedText<128>] = []
      for property in claims.properties.sorted(by: { $0.precedes($1) }) where properties.last != property {
        properties.append(property)
      }
      evidence = try Evidence(
        configuration: configuration, app: measurement.app, device: measurement.device, subject: claims.subject,
        version: claims.version, properties: measurement.properties,
        statements: EvidenceStatements(
          appProperties: properties, systemID: measurement.systemID, systemVersion: measurement.systemVersion,
          userProperty: claims.userProperty))
    } catch {
      throw .evidence(error)
    }
    return Baseline(
      configuration: configuration, measurement: measurement, evidence: try encode(evidence),
      fingerprints: try fingerprints(of: measurement, for: configuration))
  }

  private func encode(_ evidence: Evidence) throws(MeasurementError) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try evidence.encoded(authenticatedWith: keys.evidenceKey(), using: &cryptography)
    } catch {
      throw .cryptography
    }
  }
}

/// The state of a component compared with its baseline.
public enum ComponentState: Sendable, Equatable {
  /// The component has the same digest as in the baseline, or another one.
  case unchanged, changed
  /// The component could not be measured.
  case unmeasured(MeasurementError)
}

/// The state of every component compared with the baseline, and the present findings about the process.
///
/// It contains neither digests nor other data from which IM or DM could be computed.
public struct ComponentChanges: Sendable {
  /// One component of the baseline.
  public struct Entry: Sendable, Equatable {
    /// The id of the component.
    public let id: ComponentID
    /// Whether the component has device scope: it describes the prover's host.
    public let isOfDevice: Bool
    /// The state of the component compared with its baseline.
    public let state: ComponentState

    package init(id: ComponentID, isOfDevice: Bool, state: ComponentState) {
      (self.id, self.isOfDevice, self.state) = (id, isOfDevice, state)
    }
  }

  /// The components of app scope, then those of device scope, each sorted by the bytes of their ids.
  public internal(set) var entries: [Entry] = []
  /// The present findings about the process.
  public internal(set) var findings: Set<Finding> = []
}

extension Measurer {
  /// Measures each component of a configuration separately, and compares it with its baseline. A component that cannot be
  /// measured does not affect the others.
  ///
  /// - Throws: `unknownComponent` for an id that Linux does not have in that scope, and `cryptography`.
  public mutating func changes(
    since baseline: BaselineFingerprints, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> ComponentChanges {
    var changes = ComponentChanges()
    for component in try PlatformComponent.named(configuration.appIDs, in: PlatformComponent.everyApp) {
      let state = try state(of: component, since: baseline, configuration, &changes.findings)
      changes.entries.append(.init(id: component.id, isOfDevice: false, state: state))
    }
    for component in try PlatformComponent.named(configuration.deviceIDs, in: PlatformComponent.device) {
      let state = try state(of: component, since: baseline, configuration, &changes.findings)
      changes.entries.append(.init(id: component.id, isOfDevice: true, state: state))
    }
    return changes
  }

  /// Returns how many of a configuration's components differ from the baseline in a recent measurement.
  ///
  /// - Throws: `unknownComponent` if a component was not measured, and `cryptography`.
  public mutating func changedComponentCount(
    of measurement: LiveMeasurement, since baseline: BaselineFingerprints, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Int {
    let named = try completed(measurement, for: configuration).components(named: configuration)
    let now = try fingerprints(of: named, for: configuration).fingerprints
    return now.count { !baseline.fingerprints.contains($0) }
  }

  private mutating func state(
    of component: PlatformComponent, since baseline: BaselineFingerprints, _ configuration: MeasurementConfiguration,
    _ findings: inout Set<Finding>
  ) throws(MeasurementError) -> ComponentState {
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try measure(component, under: configuration.policy) } catch {
      return .unmeasured(error)
    }
    findings.formUnion(measurement.findings)
    let now = try fingerprints(of: measurement, for: configuration).fingerprints
    return now.allSatisfy(baseline.fingerprints.contains) ? .unchanged : .changed
  }
}
