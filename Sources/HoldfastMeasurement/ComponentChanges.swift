import HoldfastCore

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
