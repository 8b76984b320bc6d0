/// An app's statement to the attestation service: what it measured, under which configuration, and what it noticed.
public struct Evidence: Sendable, Hashable {
  /// The most properties that evidence carries.
  public static let maximumPropertyCount = 16

  /// The configuration of the baseline.
  public let configuration: MeasurementConfiguration
  /// One component for each app id of the configuration, in its order.
  public let app: [Component]
  /// One component for each device id of the configuration, in its order.
  public let device: [Component]
  /// The app's claim about its name, text of 1 to 64 bytes; nil for no claim. The service's policy decides by the image.
  public let subject: BoundedText<64>?
  /// The app's claim about its version; nil for no claim. The service's policy decides by the image.
  public let version: AppVersion?
  /// What was noticed, such as `debugger`: sorted, none twice.
  public let properties: [BoundedText<32>]

  /// Puts evidence together.
  ///
  /// - Throws: `unexpected` when the components are not those of the configuration, the subject is an empty text, or
  ///   properties are empty texts, out of order or repeated; `tooLong` for more than 16 properties or a version number
  ///   above 2^53 - 1.
  public init(
    configuration: MeasurementConfiguration, app: [Component], device: [Component], subject: BoundedText<64>?,
    version: AppVersion?, properties: [BoundedText<32>]
  ) throws(EncodingFault) {
    guard configuration.matches(app: app, device: device) else { throw .unexpected }
    guard properties.count <= Self.maximumPropertyCount else { throw .tooLong }
    if let version {
      guard max(version.major, version.minor, version.patch) <= maximumInteger else { throw .tooLong }
    }
    if let subject, subject.isEmpty { throw .unexpected }
    for index in properties.indices {
      guard !properties[index].isEmpty, index == 0 || properties[index - 1].precedes(properties[index])
      else { throw .unexpected }
    }
    self.configuration = configuration
    self.app = app
    self.device = device
    self.subject = subject
    self.version = version
    self.properties = properties
  }
}
