/// The configuration of a baseline: the measured components, and the salt that makes its measurements unique. It is the
/// file `measurement_config.bin`.
///
/// It holds no secret. Any changed byte changes both measurements, so no attacker gains by editing it.
public struct MeasurementConfiguration: Sendable, Hashable {
  /// The most components that a configuration names.
  public static let maximumComponentCount = 64

  /// 32 random bytes, fresh at each baseline.
  public let salt: ConfigurationSalt
  /// The id of the measurement proof key that proves the measurements, 8 bytes.
  public let mpkID: KeyID
  /// The ids of the components of app scope, sorted by their bytes.
  public let appIDs: [ComponentID]
  /// The ids of the components of device scope, the prover's host, sorted by their bytes.
  public let deviceIDs: [ComponentID]
  /// The time of the baseline, in Unix seconds.
  public let created: UInt64

  /// Creates a configuration from its parts.
  ///
  /// - Parameters:
  ///   - salt: 32 random bytes.
  ///   - mpkID: 8 bytes.
  ///   - appIDs: at least one id of printable ASCII, sorted by bytes.
  ///   - deviceIDs: the same; no id is in both lists, and both have at most 64 together.
  ///   - created: Unix seconds, at most 2^53 - 1.
  /// - Throws: `unexpected` if a list breaks these rules or `created` is too large, `tooLong` for too many ids.
  public init(
    salt: ConfigurationSalt, mpkID: KeyID, appIDs: [ComponentID], deviceIDs: [ComponentID], created: UInt64
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

extension MeasurementConfiguration {
  /// Decodes a configuration: the deterministic CBOR map
  /// `{1: 1, 2: salt, 3: mpk id, 4: [app ids], 5: [device ids], 6: created}`.
  ///
  /// - Parameter bytes: the whole file.
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` if it is but not this map, `tooLong` for too
  ///   many ids.
  public init(decoding bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    guard try reader.mapHead() == 6 else { throw .unexpected }
    var order = CBORLabelOrder()
    try reader.label(1, &order)
    guard try reader.unsigned() == 1 else { throw .unexpected }
    try reader.label(2, &order)
    let salt: ConfigurationSalt = try reader.fixedBytes()
    try reader.label(3, &order)
    let mpkID: KeyID = try reader.fixedBytes()
    try reader.label(4, &order)
    let appIDs = try Self.readIDs(&reader)
    try reader.label(5, &order)
    let deviceIDs = try Self.readIDs(&reader)
    try reader.label(6, &order)
    let created = try reader.unsigned()
    try reader.finish()
    try self.init(salt: salt, mpkID: mpkID, appIDs: appIDs, deviceIDs: deviceIDs, created: created)
  }

  /// Returns the configuration as deterministic CBOR. No other bytes decode to the same configuration.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) where Sink.Failure == Never {
    sink.appendCBOR(map: 6)
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(unsigned: 2)
    sink.appendCBOR(bytes: salt.bytes)
    sink.appendCBOR(unsigned: 3)
    sink.appendCBOR(bytes: mpkID.bytes)
    sink.appendCBOR(unsigned: 4)
    Self.encode(ids: appIDs, into: &sink)
    sink.appendCBOR(unsigned: 5)
    Self.encode(ids: deviceIDs, into: &sink)
    sink.appendCBOR(unsigned: 6)
    sink.appendCBOR(unsigned: created)
  }

  private static func encode<Sink: ByteSink & ~Copyable>(ids: [ComponentID], into sink: inout Sink)
  where Sink.Failure == Never {
    sink.appendCBOR(array: ids.count)
    for id in ids { sink.appendCBOR(text: id.bytes) }
  }

  private static func readIDs(_ reader: inout CBORReader) throws(EncodingFault) -> [ComponentID] {
    let count = try reader.arrayHead()
    guard count <= maximumComponentCount else { throw .tooLong }
    var ids: [ComponentID] = []
    for _ in 0..<count { ids.append(try ComponentID(componentID: reader.textString())) }
    return ids
  }

  /// Computes the integrity measurement (IM): the state of the app and of the prover's host, as one secret.
  ///
  /// `HMAC-SHA-256(salt, "holdfast/1 integrity" ‖ 0x00 ‖ SHA-256(configuration) ‖ C)`, where `C` is the deterministic CBOR
  /// array of `[id, digest]`, sorted by the bytes of id.
  ///
  /// - Parameters:
  ///   - app: one component for each of ``appIDs``, in the same order.
  ///   - device: one component for each of ``deviceIDs``, in the same order.
  ///   - cryptography: an implementation of the primitives.
  /// - Returns: 32 secret bytes.
  /// - Throws: `componentsDiffer` if an id is missing, superfluous or out of order; `cryptography` if the library
  ///   fails.
  public func integrityMeasurement<Backend: Cryptography & ~Copyable>(
    app: [Component], device: [Component], using cryptography: inout Backend
  ) throws(MeasurementFault) -> Secret<32> {
    guard matches(app: app, device: device) else { throw .componentsDiffer }
    let all = (app + device).sorted { $0.id.precedes($1.id) }
    return try measurement("holdfast/1 integrity", of: all, using: &cryptography)
  }

  /// Computes the device measurement (DM): the state of the prover's host only, as one secret.
  ///
  /// `HMAC-SHA-256(salt, "holdfast/1 device" ‖ 0x00 ‖ SHA-256(configuration) ‖ C)`, where `C` holds only the components
  /// of device scope.
  ///
  /// - Parameters:
  ///   - device: one component for each of ``deviceIDs``, in the same order.
  ///   - cryptography: an implementation of the primitives.
  /// - Returns: 32 secret bytes.
  /// - Throws: `componentsDiffer` if an id is missing, superfluous or out of order; `cryptography` if the library
  ///   fails.
  public func deviceMeasurement<Backend: Cryptography & ~Copyable>(
    device: [Component], using cryptography: inout Backend
  ) throws(MeasurementFault) -> Secret<32> {
    guard names(deviceIDs, device) else { throw .componentsDiffer }
    return try measurement("holdfast/1 device", of: device, using: &cryptography)
  }

  /// Returns SHA-256 of the configuration's bytes.
  public func digest<Backend: Cryptography & ~Copyable>(
    using cryptography: inout Backend
  ) throws(CryptographyFailure) -> Digest {
    var hash = try cryptography.sha256()
    encode(into: &hash)
    return try hash.finish()
  }

  /// Returns whether these are exactly the components that the configuration names, in its order.
  func matches(app: [Component], device: [Component]) -> Bool {
    names(appIDs, app) && names(deviceIDs, device)
  }

  private func names(_ ids: [ComponentID], _ components: [Component]) -> Bool {
    guard ids.count == components.count else { return false }
    for index in ids.indices where ids[index] != components[index].id { return false }
    return true
  }

  private func measurement<Backend: Cryptography & ~Copyable>(
    _ domain: StaticString, of components: [Component], using cryptography: inout Backend
  ) throws(MeasurementFault) -> Secret<32> {
    do throws(CryptographyFailure) {
      let configuration = try digest(using: &cryptography)
      var mac = try cryptography.hmacSHA256(key: salt.bytes)
      mac.append(domain: domain)
      mac.append(configuration.bytes)
      mac.appendCBOR(array: components.count)
      for component in components { component.encode(into: &mac) }
      return try mac.finishSecret()
    } catch {
      throw .cryptography
    }
  }
}

/// The reason why a measurement could not be made from components.
public enum MeasurementFault: Error, Equatable {
  /// The components are not exactly those that the configuration names.
  case componentsDiffer
  /// The cryptographic library failed.
  case cryptography
}
