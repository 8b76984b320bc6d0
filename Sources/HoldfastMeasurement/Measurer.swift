import HoldfastCore
import HoldfastOpenSSL

/// A measurer of the running process and of the prover's host. Each call measures everything again, except code that is known to be
/// unchanged where a configuration permits that.
///
/// Only one thread at a time may use it. Objects that the app loads after its baseline (by `dlopen`, or when the C library looks
/// up users or hosts) change the integrity measurement, so the app should load them before.
public struct Measurer: ~Copyable {
  let keys: ProofKeys
  private let files: HostFiles
  private var cryptography = OpenSSLCryptography()
  private var chunk = [UInt8](repeating: 0, count: Measurer.chunkByteCount)

  /// The number of bytes that are read and hashed at once.
  package static let chunkByteCount = 256 << 10

  /// Creates a measurer of the running system.
  ///
  /// - Parameter keys: the keys of the app's releases. The first authenticates baselines.
  public init(keys: ProofKeys) { self.init(keys: keys, files: HostFiles()) }

  /// Creates a measurer of the running system, or of a folder laid out like one for a test.
  package init(keys: ProofKeys, files: HostFiles) {
    (self.keys, self.files) = (keys, files)
  }

  /// Measures every component that Linux has.
  ///
  /// - Parameter makingDeviceSecret: whether a missing device secret is created first, as for a baseline.
  /// - Throws: ``MeasurementError`` if a source cannot be read; `deviceSecret` if the secret cannot be used or made, also on a full
  ///   disk, which leaves none.
  public mutating func measure(makingDeviceSecret: Bool = false) throws(MeasurementError) -> LiveMeasurement {
    try measure(PlatformComponent.app, PlatformComponent.device, makingDeviceSecret: makingDeviceSecret)
  }

  /// Measures every component that Linux has, for a proof under a policy.
  ///
  /// - Parameters:
  ///   - policy: the policy that the configurations have which the measurement is for.
  ///   - makingDeviceSecret: whether a missing device secret is created first.
  /// - Throws: the errors of ``measure(makingDeviceSecret:)``.
  package mutating func measure(
    under policy: MeasurementPolicy, makingDeviceSecret: Bool = false
  ) throws(MeasurementError) -> LiveMeasurement {
    try measure(
      PlatformComponent.app, PlatformComponent.device, makingDeviceSecret: makingDeviceSecret, policy: policy)
  }

  /// Measures every component that Linux has, and `host.posture`, which a baseline has only by policy.
  package mutating func measureWithPosture(
    under policy: MeasurementPolicy = [], makingDeviceSecret: Bool = false
  ) throws(MeasurementError) -> LiveMeasurement {
    try measure(
      PlatformComponent.everyApp, PlatformComponent.device, makingDeviceSecret: makingDeviceSecret, policy: policy)
  }

  /// Returns a recent measurement with the components that a configuration names but that are measured only for those that do. Known
  /// code is hashed if the configuration does not permit it, and so is code whose digests have another form than the configuration
  /// demands.
  mutating func completed(
    _ measurement: LiveMeasurement, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> LiveMeasurement {
    var completed = measurement
    if measurement.isCodeKnown && !configuration.policy.contains(.knownCode)
      || measurement.hasTreeDigests != configuration.policy.contains(.treeDigests)
    {
      completed = try measure(PlatformComponent.app, PlatformComponent.device, policy: configuration.policy)
      completed.add(measurement.properties)
    }
    for component in PlatformComponent.optional {
      guard configuration.appIDs.contains(component.id), !completed.app.contains(where: { $0.id == component.id })
      else { continue }
      var chunk: [UInt8] = []
      var pass = MeasurementPass(files: files)
      completed.app += try pass.measure([component], [], chunk: &chunk).app
      completed.app.sort { $0.id.precedes($1.id) }
    }
    return completed
  }

  /// Measures exactly the components that a configuration names.
  ///
  /// - Throws: `unknownComponent` for an id that Linux does not have in that scope; another error if a source cannot be read.
  public mutating func measure(for configuration: MeasurementConfiguration) throws(MeasurementError) -> LiveMeasurement
  {
    try measure(
      PlatformComponent.named(configuration.appIDs, in: PlatformComponent.everyApp),
      PlatformComponent.named(configuration.deviceIDs, in: PlatformComponent.device), policy: configuration.policy)
  }

  /// Returns the integrity measurement (IM) of the app and its host, measured as the configuration permits: 32 secret bytes.
  public mutating func integrityMeasurement(
    for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Secret<32> {
    let measurement = try measure(for: configuration)
    return try integrityMeasurement(of: measurement, for: configuration)
  }

  /// Returns the device measurement (DM) of the prover's host, freshly measured and independent of the app: 32 secret bytes.
  public mutating func deviceMeasurement(
    for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Secret<32> {
    let device = try PlatformComponent.named(configuration.deviceIDs, in: PlatformComponent.device)
    return try deviceMeasurement(of: measure([], device), for: configuration)
  }

  /// Returns IM, DM and the key that proves them, from one fresh measurement.
  ///
  /// - Throws: `unknownKey` if the key is not one of the app's, and the errors of ``measure(for:)``.
  public mutating func provableMeasurements(
    for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> ProvableMeasurements {
    try provableMeasurements(of: try measure(for: configuration), for: configuration)
  }

  /// Returns IM, DM and the key that proves them, from a recent measurement. One measurement of every component serves for any
  /// configuration.
  ///
  /// - Parameters:
  ///   - measurement: all components that the configuration names; additional ones are ignored.
  ///   - configuration: the components that count.
  /// - Throws: `unknownKey` if the key is not one of the app's, and `unknownComponent` if a component was not measured.
  public mutating func provableMeasurements(
    of measurement: LiveMeasurement, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> ProvableMeasurements {
    guard let key = try keys.provingKey(named: configuration.mpkID) else { throw .unknownKey }
    let measurement = try completed(measurement, for: configuration).components(named: configuration)
    return try ProvableMeasurements(
      integrity: integrityMeasurement(of: measurement, for: configuration),
      device: deviceMeasurement(of: measurement, for: configuration), key: key)
  }

  /// Returns the fingerprints of a present measurement, for comparison with those of the baseline.
  public mutating func fingerprints(
    of measurement: LiveMeasurement, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> BaselineFingerprints {
    do throws(CryptographyFailure) {
      return try BaselineFingerprints(
        of: measurement.app + measurement.device, salt: configuration.salt, using: &cryptography)
    } catch {
      throw .cryptography
    }
  }

  private mutating func integrityMeasurement(
    of measurement: LiveMeasurement, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Secret<32> {
    do throws(MeasurementFault) {
      return try configuration.integrityMeasurement(
        app: measurement.app, device: measurement.device, using: &cryptography)
    } catch {
      throw MeasurementError(error)
    }
  }

  private mutating func deviceMeasurement(
    of measurement: LiveMeasurement, for configuration: MeasurementConfiguration
  ) throws(MeasurementError) -> Secret<32> {
    do throws(MeasurementFault) {
      return try configuration.deviceMeasurement(device: measurement.device, using: &cryptography)
    } catch {
      throw MeasurementError(error)
    }
  }

  /// Measures the components `app.debug` and `app.injected`, which read no code and therefore take little time.
  ///
  /// - Throws: ``MeasurementError`` if a source cannot be read.
  package mutating func integrityChecks() throws(MeasurementError) -> LiveMeasurement {
    try measure([.appDebug, .appInjected], [])
  }

  /// Measures one component, in the form that a policy demands.
  mutating func measure(
    _ component: PlatformComponent, under policy: MeasurementPolicy
  ) throws(MeasurementError) -> LiveMeasurement {
    try measure([component], [], policy: policy)
  }

  private mutating func measure(
    _ app: [PlatformComponent], _ device: [PlatformComponent], makingDeviceSecret: Bool = false,
    policy: MeasurementPolicy = []
  ) throws(MeasurementError) -> LiveMeasurement {
    var pass = MeasurementPass(files: files, makingDeviceSecret: makingDeviceSecret, policy: policy)
    return try pass.measure(app, device, chunk: &chunk)
  }
}

/// The secrets that a prover needs for a session with a device.
public struct ProvableMeasurements: ~Copyable {
  /// The integrity measurement (IM), 32 bytes.
  public let integrity: Secret<32>
  /// The device measurement (DM) of the prover's host, 32 bytes.
  public let device: Secret<32>
  /// The measurement proof key (MPK), 16 bytes.
  public let key: MeasurementProofKey
}

extension MeasurementError {
  init(_ fault: MeasurementFault) {
    switch fault {
    case .componentsDiffer: self = .unknownComponent
    case .cryptography: self = .cryptography
    }
  }
}

/// The components that Linux has, in the order of their ids within each scope.
enum PlatformComponent: CaseIterable {
  case appDebug, appImage, appInjected, appText, hostPosture, osRelease
  case deviceCPU, deviceMachine, deviceSecret

  static let app: [PlatformComponent] = [.appDebug, .appImage, .appInjected, .appText, .osRelease]
  /// The components that are measured only for a configuration that names them.
  static let optional: [PlatformComponent] = [.hostPosture]
  /// The components of app scope with the optional ones.
  static let everyApp: [PlatformComponent] = [.appDebug, .appImage, .appInjected, .appText, .hostPosture, .osRelease]
  static let device: [PlatformComponent] = [.deviceCPU, .deviceMachine, .deviceSecret]

  var id: ComponentID {
    switch self {
    case .appDebug: ComponentID("app.debug")
    case .appImage: ComponentID("app.image")
    case .appInjected: ComponentID("app.injected")
    case .appText: ComponentID("app.text")
    case .hostPosture: ComponentID("host.posture")
    case .osRelease: ComponentID("os.release")
    case .deviceCPU: ComponentID("device.cpu")
    case .deviceMachine: ComponentID("device.machine")
    case .deviceSecret: ComponentID("device.secret")
    }
  }

  /// Returns the components of `scope` that `ids` names, in the order of `ids`.
  static func named(_ ids: [ComponentID], in scope: [PlatformComponent]) throws(MeasurementError) -> [PlatformComponent]
  {
    var components: [PlatformComponent] = []
    for id in ids {
      guard let component = scope.first(where: { $0.id == id }) else { throw .unknownComponent }
      components.append(component)
    }
    return components
  }
}
