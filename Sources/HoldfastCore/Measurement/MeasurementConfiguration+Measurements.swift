extension MeasurementConfiguration {
  /// IM: what the app and the device are, as one secret.
  ///
  /// `HMAC-SHA-256(salt, "holdfast/1 integrity" ‖ 0x00 ‖ SHA-256(configuration) ‖ C)`, where `C` is the deterministic CBOR
  /// array of `[id, digest]`, sorted by the bytes of id.
  ///
  /// - Parameters:
  ///   - app: one component for each of ``appIDs``, in the same order.
  ///   - device: one component for each of ``deviceIDs``, in the same order.
  /// - Returns: 32 secret bytes.
  /// - Throws: `componentsDiffer` when an id is missing, too much or out of order; `cryptography` when the library fails.
  public func integrityMeasurement<Backend: Cryptography & ~Copyable>(
    app: [Component], device: [Component], using cryptography: inout Backend
  ) throws(MeasurementFault) -> Secret<32> {
    guard matches(app: app, device: device) else { throw .componentsDiffer }
    let all = (app + device).sorted { $0.id.precedes($1.id) }
    return try measurement("holdfast/1 integrity", of: all, using: &cryptography)
  }

  /// DM: what the device alone is, as one secret.
  ///
  /// `HMAC-SHA-256(salt, "holdfast/1 device" ‖ 0x00 ‖ SHA-256(configuration) ‖ C)`, where `C` holds the device's
  /// components only.
  ///
  /// - Parameter device: one component for each of ``deviceIDs``, in the same order.
  /// - Returns: 32 secret bytes.
  /// - Throws: `componentsDiffer` when an id is missing, too much or out of order; `cryptography` when the library fails.
  public func deviceMeasurement<Backend: Cryptography & ~Copyable>(
    device: [Component], using cryptography: inout Backend
  ) throws(MeasurementFault) -> Secret<32> {
    guard names(deviceIDs, device) else { throw .componentsDiffer }
    return try measurement("holdfast/1 device", of: device, using: &cryptography)
  }

  /// SHA-256 of the configuration's bytes.
  public func digest<Backend: Cryptography & ~Copyable>(
    using cryptography: inout Backend
  ) throws(CryptographyFailure) -> Digest {
    var hash = try cryptography.sha256()
    encode(into: &hash)
    return try hash.finish()
  }

  /// Whether these are exactly the components that the configuration names, in its order.
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
