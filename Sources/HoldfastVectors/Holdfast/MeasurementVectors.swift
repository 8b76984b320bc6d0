import HoldfastCore
import HoldfastOpenSSL

/// `Measurement`: components, salt and proof key give the configuration, both measurements and the proof key's id.
///
/// Source: docs/protocol.md, Measurement.
struct MeasurementVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let vector = try MeasurementVector(test.node)
    do throws(Refusal) {
      try vector.check()
      return .accepted
    } catch { return .refused(error.reason) }
  }
}

/// A test of `Measurement`, read.
private struct MeasurementVector {
  let proofKey: FixedBytes<16>
  let app: [NamedDigest]
  let device: [NamedDigest]
  let salt: FixedBytes<32>
  let created: UInt64
  let configuration: [UInt8]
  let integrity: FixedBytes<32>
  let deviceMeasurement: FixedBytes<32>
  let proofKeyID: KeyID

  init(_ node: VectorNode) throws(VectorFault) {
    proofKey = try node.member("mpk").fixed()
    app = try NamedDigest.list(node.member("appComponents"))
    device = try NamedDigest.list(node.member("deviceComponents"))
    salt = try node.member("salt").fixed()
    created = try node.member("created").number()
    configuration = try node.member("configuration").bytes()
    integrity = try node.member("integrity").fixed()
    deviceMeasurement = try node.member("device").fixed()
    proofKeyID = try node.member("mpkId").fixed()
  }

  func check() throws(Refusal) {
    let app = try Self.components(app)
    let device = try Self.components(device)
    var cryptography = OpenSSLCryptography()
    let key = secret(proofKey)
    let keyID: KeyID
    do throws(CryptographyFailure) {
      keyID = try measurementProofKeyID(key, using: &cryptography)
    } catch { throw Refusal(reason: "no mpkId") }
    guard keyID == proofKeyID else { throw Refusal(reason: "mpkId differs") }
    let made = try makeConfiguration(app: app, device: device)
    try Refusal.unless(made.encoded(), configuration, "configuration")
    let read: MeasurementConfiguration
    do throws(EncodingFault) {
      read = try MeasurementConfiguration(decoding: configuration.span)
    } catch { throw Refusal(reason: "configuration cannot be read") }
    guard read == made else { throw Refusal(reason: "configuration, read again, differs") }
    let measured: (integrity: FixedBytes<32>, device: FixedBytes<32>)
    do throws(MeasurementFault) {
      measured.integrity = publicBytes(
        try made.integrityMeasurement(app: app, device: device, using: &cryptography))
      measured.device = publicBytes(try made.deviceMeasurement(device: device, using: &cryptography))
    } catch { throw Refusal(reason: "no measurement") }
    guard measured.integrity == integrity else { throw Refusal(reason: "integrity differs") }
    guard measured.device == deviceMeasurement else { throw Refusal(reason: "device differs") }
  }

  private func makeConfiguration(app: [Component], device: [Component]) throws(Refusal) -> MeasurementConfiguration {
    do throws(EncodingFault) {
      return try MeasurementConfiguration(
        salt: salt, mpkID: proofKeyID, appIDs: app.map { $0.id }, deviceIDs: device.map { $0.id }, created: created)
    } catch { throw Refusal(reason: "no configuration has these ids") }
  }

  /// The components, sorted by the bytes of their ids.
  private static func components(_ list: [NamedDigest]) throws(Refusal) -> [Component] {
    var components: [Component] = []
    for item in list.sorted(by: { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }) {
      guard let id = ComponentID(item.id) else { throw Refusal(reason: "a component id is too long") }
      components.append(Component(id: id, digest: item.digest))
    }
    return components
  }
}

/// `[id, digest]`, as a vector writes a component.
private struct NamedDigest {
  let id: String
  let digest: Digest

  static func list(_ node: VectorNode) throws(VectorFault) -> [NamedDigest] {
    var list: [NamedDigest] = []
    for pair in try node.elements() {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault(.wrongValue) }
      list.append(NamedDigest(id: try parts[0].text(), digest: try parts[1].fixed()))
    }
    return list
  }
}
