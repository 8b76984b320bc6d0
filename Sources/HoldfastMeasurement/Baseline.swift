import HoldfastCore
import HoldfastOpenSSL

/// A measurement that an issuer is to approve, with everything that follows from it.
public struct Baseline: Sendable {
  /// What is kept as `measurement_config.bin`.
  public let configuration: MeasurementConfiguration
  /// What was measured.
  public let measurement: LiveMeasurement
  /// The evidence for the attestation service, authenticated. Anyone who reads it knows IM and DM.
  public let evidence: [UInt8]
  /// What is kept to explain changes.
  public let fingerprints: BaselineFingerprints
}

extension Measurer {
  /// Takes a baseline of app and device as they are now, under a fresh salt; makes the device secret if there is none.
  ///
  /// - Parameters:
  ///   - subject: a claim about the app's name, 1 to 64 bytes; nil for no claim. The service's policy names the app.
  ///   - version: a claim about the app's version; nil for no claim. The service's policy knows the version.
  ///   - clock: tells when; without a real clock, the baseline is of 1970.
  ///   - random: gives the salt.
  /// - Throws: when anything cannot be read, or there is no randomness.
  public mutating func takeBaseline(
    subject: BoundedText<64>? = nil, version: AppVersion? = nil, clock: borrowing some Clock & ~Copyable,
    random: inout some RandomSource & ~Copyable
  ) throws(MeasurementError) -> Baseline {
    try baseline(
      of: try measure(makingDeviceSecret: true), subject: subject, version: version, clock: clock, random: &random)
  }

  /// Makes a baseline of a measurement that was taken a moment ago, under a fresh salt. One measurement serves for the
  /// baselines of several verifiers.
  ///
  /// - Parameters:
  ///   - measurement: every component that Linux has, as ``measure(makingDeviceSecret:)`` gives it.
  ///   - subject: as for ``takeBaseline(subject:version:clock:random:)``, and so are the others.
  /// - Throws: when there is no randomness, or the evidence does not hold what was measured.
  public mutating func baseline(
    of measurement: LiveMeasurement, subject: BoundedText<64>? = nil, version: AppVersion? = nil,
    clock: borrowing some Clock & ~Copyable, random: inout some RandomSource & ~Copyable
  ) throws(MeasurementError) -> Baseline {
    BuiltInKeys.warnOfDevelopmentKey()
    let salt: FixedBytes<32>
    do throws(RandomFailure) { salt = try random.fixedBytes() } catch { throw .cryptography }
    let keyID = try BuiltInKeys.keyID(of: BuiltInKeys.current)
    let configuration: MeasurementConfiguration
    let evidence: Evidence
    do throws(EncodingFault) {
      configuration = try MeasurementConfiguration(
        salt: salt, mpkID: keyID, appIDs: measurement.app.map(\.id), deviceIDs: measurement.device.map(\.id),
        created: clock.unixSeconds() ?? 0)
      evidence = try Evidence(
        configuration: configuration, app: measurement.app, device: measurement.device, subject: subject,
        version: version, properties: measurement.properties)
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
      return try evidence.encoded(authenticatedWith: BuiltInKeys.evidenceKey(at: 0), using: &cryptography)
    } catch {
      throw .cryptography
    }
  }
}

/// What became of a component since its baseline.
public enum ComponentState: Sendable, Equatable {
  case unchanged, changed
  /// It could not be measured.
  case unmeasured(MeasurementError)
}

/// What became of every component since the baseline, and what is wrong with the process now.
///
/// Holds neither digests nor anything else that IM or DM could be computed from.
public struct ComponentChanges: Sendable {
  /// One component of the baseline.
  public struct Entry: Sendable, Equatable {
    public let id: ComponentID
    public let isOfDevice: Bool
    public let state: ComponentState
  }

  /// Those of app scope, then those of device scope, each sorted by the bytes of id.
  public internal(set) var entries: [Entry] = []
  /// What is wrong with the process now.
  public internal(set) var findings: Set<Finding> = []
}

extension Measurer {
  /// Measures each component that a configuration names by itself, and compares it with its baseline. One that cannot be
  /// measured keeps none of the others from it.
  ///
  /// - Throws: `unknownComponent` for an id that Linux does not have in that scope, and `cryptography`.
  public mutating func changes(
    since baseline: BaselineFingerprints, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> ComponentChanges {
    var changes = ComponentChanges()
    for component in try PlatformComponent.named(configuration.appIDs, in: PlatformComponent.app) {
      let state = try state(of: component, since: baseline, configuration, &changes.findings)
      changes.entries.append(.init(id: component.id, isOfDevice: false, state: state))
    }
    for component in try PlatformComponent.named(configuration.deviceIDs, in: PlatformComponent.device) {
      let state = try state(of: component, since: baseline, configuration, &changes.findings)
      changes.entries.append(.init(id: component.id, isOfDevice: true, state: state))
    }
    return changes
  }

  /// The number of a configuration's components that a measurement of a moment ago has otherwise than the baseline.
  ///
  /// - Throws: `unknownComponent` when a component was not measured, and `cryptography`.
  public mutating func changedComponentCount(
    of measurement: LiveMeasurement, since baseline: BaselineFingerprints, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Int {
    let named = try measurement.components(named: configuration)
    let now = try fingerprints(of: named, for: configuration).fingerprints
    return now.count { !baseline.fingerprints.contains($0) }
  }

  private mutating func state(
    of component: PlatformComponent, since baseline: BaselineFingerprints, _ configuration: MeasurementConfiguration,
    _ findings: inout Set<Finding>
  ) throws(MeasurementError) -> ComponentState {
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try measure(component) } catch { return .unmeasured(error) }
    findings.formUnion(measurement.findings)
    let now = try fingerprints(of: measurement, for: configuration).fingerprints
    return now.allSatisfy(baseline.fingerprints.contains) ? .unchanged : .changed
  }
}
