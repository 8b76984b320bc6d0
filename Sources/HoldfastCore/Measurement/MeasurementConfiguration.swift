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
  /// The ways of measuring that the baseline permits or demands. Without any, the configuration has the form of version 1.
  public let policy: MeasurementPolicy

  /// Creates a configuration from its parts.
  ///
  /// - Parameters:
  ///   - salt: 32 random bytes.
  ///   - mpkID: 8 bytes.
  ///   - appIDs: at least one id of printable ASCII, sorted by bytes.
  ///   - deviceIDs: the same; no id is in both lists, and both have at most 64 together.
  ///   - created: Unix seconds, at most 2^53 - 1.
  ///   - policy: the ways of measuring that the baseline permits.
  /// - Throws: `unexpected` if a list breaks these rules, `created` is too large or a bit of `policy` has no meaning, `tooLong` for
  ///   too many ids.
  public init(
    salt: ConfigurationSalt, mpkID: KeyID, appIDs: [ComponentID], deviceIDs: [ComponentID], created: UInt64,
    policy: MeasurementPolicy = []
  ) throws(EncodingFault) {
    guard appIDs.count <= Self.maximumComponentCount, deviceIDs.count <= Self.maximumComponentCount - appIDs.count
    else { throw .tooLong }
    guard !appIDs.isEmpty, !deviceIDs.isEmpty, created <= maximumInteger, policy.isSubset(of: .all)
    else { throw .unexpected }
    try Self.checkOrder(of: appIDs)
    try Self.checkOrder(of: deviceIDs)
    for id in deviceIDs where appIDs.contains(id) { throw .unexpected }
    self.salt = salt
    self.mpkID = mpkID
    self.appIDs = appIDs
    self.deviceIDs = deviceIDs
    self.created = created
    self.policy = policy
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
  /// `{1: 1, 2: salt, 3: mpk id, 4: [app ids], 5: [device ids], 6: created}`; with a policy, label 1 is 2, and `7: policy` follows.
  ///
  /// - Parameter bytes: the whole file.
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` if it is but not this map, `tooLong` for too
  ///   many ids.
  public init(decoding bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    let count = try reader.mapHead()
    guard count == 6 || count == 7 else { throw .unexpected }
    let hasPolicy = count == 7
    var order = CBORLabelOrder()
    try reader.label(1, &order)
    guard try reader.unsigned() == (hasPolicy ? 2 : 1) else { throw .unexpected }
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
    let policy = hasPolicy ? try Self.readPolicy(&reader, &order) : []
    try reader.finish()
    try self.init(
      salt: salt, mpkID: mpkID, appIDs: appIDs, deviceIDs: deviceIDs, created: created, policy: policy)
  }

  /// Returns the configuration as deterministic CBOR. No other bytes decode to the same configuration.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) where Sink.Failure == Never {
    sink.appendCBOR(map: policy.isEmpty ? 6 : 7)
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(unsigned: policy.isEmpty ? 1 : 2)
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
    guard !policy.isEmpty else { return }
    sink.appendCBOR(unsigned: 7)
    sink.appendCBOR(unsigned: UInt64(policy.rawValue))
  }

  private static func encode<Sink: ByteSink & ~Copyable>(ids: [ComponentID], into sink: inout Sink)
  where Sink.Failure == Never {
    sink.appendCBOR(array: ids.count)
    for id in ids { sink.appendCBOR(text: id.bytes) }
  }

  /// Reads the policy, which is never empty: that configuration has another form.
  private static func readPolicy(
    _ reader: inout CBORReader, _ order: inout CBORLabelOrder
  ) throws(EncodingFault) -> MeasurementPolicy {
    try reader.label(7, &order)
    guard let bits = UInt8(exactly: try reader.unsigned()), bits != 0 else { throw .unexpected }
    return MeasurementPolicy(rawValue: bits)
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
