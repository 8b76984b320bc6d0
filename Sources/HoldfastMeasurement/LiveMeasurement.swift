import HoldfastCore

/// What app and device look like at one moment.
public struct LiveMeasurement: Sendable {
  /// How long one component took.
  public struct Duration: Sendable {
    public let id: ComponentID
    public let nanoseconds: UInt64
  }

  /// The components of app scope that were measured, sorted by the bytes of id.
  public internal(set) var app: [Component] = []
  /// The components of device scope that were measured, sorted by the bytes of id.
  public internal(set) var device: [Component] = []
  /// What was noticed, for the attestation service: `agent`, `debugger`, `injection`; sorted.
  public internal(set) var properties: [BoundedText<32>] = []
  /// Whether nothing but `device.secret` tells this device from another of its kind, as in most containers.
  public internal(set) var restsOnDeviceSecretAlone = false
  /// How long each component took, in the order in which they were done: `app.image` beside the others, on a thread of its
  /// own. What several need is with the first.
  public internal(set) var durations: [Duration] = []

  /// What is wrong with the process.
  public internal(set) var findings: Set<Finding> = []
  /// Where the kernel's fs-verity answered for bytes.
  public internal(set) var verity = VerityUse()

  /// Where the kernel's fs-verity answered for bytes that were not read.
  public struct VerityUse: Sendable, Equatable {
    /// Whether the executable file has it.
    public internal(set) var hasImage = false
    /// How many executable segments are of files that have it, and unchanged in memory.
    public internal(set) var segmentCount = 0
    /// How many executable segments there are.
    public internal(set) var allSegmentCount = 0
  }

  mutating func note(_ property: StaticString) {
    properties.append(BoundedText(property))
  }

  /// The same, with exactly the components that a configuration names, in its order; `unknownComponent` when one is missing.
  func components(named configuration: MeasurementConfiguration) throws(MeasurementError) -> LiveMeasurement {
    var named = self
    named.app = try Self.components(configuration.appIDs, of: app)
    named.device = try Self.components(configuration.deviceIDs, of: device)
    return named
  }

  private static func components(
    _ ids: [ComponentID], of measured: [Component]
  ) throws(MeasurementError) -> [Component] {
    var components: [Component] = []
    for id in ids {
      guard let component = measured.first(where: { $0.id == id }) else { throw .unknownComponent }
      components.append(component)
    }
    return components
  }
}
