/// What a baseline measured, and the salt that makes its measurements its own: the file `measurement_config.bin`.
///
/// It holds no secret. Any changed byte changes both measurements, so nobody gains by editing it.
public struct MeasurementConfiguration: Sendable, Hashable {
  /// The most components that a configuration names.
  public static let maximumComponentCount = 64

  /// 32 random bytes, fresh at each baseline.
  public let salt: FixedBytes<32>
  /// Which measurement proof key proves it.
  public let mpkID: KeyID
  /// The components of app scope, sorted by their bytes.
  public let appIDs: [ComponentID]
  /// The components of device scope, sorted by their bytes.
  public let deviceIDs: [ComponentID]
  /// When the baseline was taken, in Unix seconds.
  public let created: UInt64

  /// Puts a configuration together.
  ///
  /// - Parameters:
  ///   - salt: 32 random bytes.
  ///   - mpkID: 8 bytes.
  ///   - appIDs: at least one id of printable ASCII, sorted by bytes.
  ///   - deviceIDs: the same; no id is in both lists, and both have at most 64 together.
  ///   - created: Unix seconds, at most 2^53 - 1.
  /// - Throws: `unexpected` when a list breaks these rules, `tooLong` for too many ids.
  public init(
    salt: FixedBytes<32>, mpkID: KeyID, appIDs: [ComponentID], deviceIDs: [ComponentID], created: UInt64
  ) throws(EncodingFault) {
    guard appIDs.count <= Self.maximumComponentCount, deviceIDs.count <= Self.maximumComponentCount - appIDs.count
    else { throw .tooLong }
    guard !appIDs.isEmpty, !deviceIDs.isEmpty, created <= maximumInteger else { throw .unexpected }
    try Self.checkOrder(of: appIDs)
    try Self.checkOrder(of: deviceIDs)
    for id in deviceIDs where appIDs.contains(id) { throw .unexpected }
    self.salt = salt
    self.mpkID = mpkID
    self.appIDs = appIDs
    self.deviceIDs = deviceIDs
    self.created = created
  }

  private static func checkOrder(of ids: [ComponentID]) throws(EncodingFault) {
    for index in ids.indices {
      guard ids[index].isComponentID else { throw .unexpected }
      guard index == 0 || ids[index - 1].precedes(ids[index]) else { throw .unexpected }
    }
  }
}
