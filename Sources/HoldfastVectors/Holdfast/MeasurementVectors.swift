import HoldfastCore
import HoldfastOpenSSL

/// The vectors `Measurement`: components, salt and proof key determine the configuration, both measurements and the
/// proof key's id. A test is refused if one of them is another, or if an input has another length.
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

/// A parsed test of `Measurement`.
private struct MeasurementVector {
  let proofKey: [UInt8]
  let app: [NamedDigest]
  let device: [NamedDigest]
  let salt: [UInt8]
  let created: UInt64
  let configuration: [UInt8]
  let integrity: [UInt8]
  let deviceMeasurement: [UInt8]
  let proofKeyID: KeyID

  init(_ node: VectorNode) throws(VectorFault) {
    proofKey = try node.member("mpk").bytes()
    app = try NamedDigest.list(node.member("appComponents"))
    device = try NamedDigest.list(node.member("deviceComponents"))
    salt = try node.member("salt").bytes()
    created = try node.member("created").number()
    configuration = try node.member("configuration").bytes()
    integrity = try node.member("integrity").bytes()
    deviceMeasurement = try node.member("device").bytes()
    proofKeyID = try node.member("mpkId").fixed()
  }

  func check() throws(Refusal) {
    let app = try Self.components(app)
    let device = try Self.components(device)
    var cryptography = OpenSSLCryptography()
    guard let key = MeasurementProofKey(copying: proofKey.span) else { throw Refusal(reason: "mpk of another length") }
    let keyID: KeyID
    do throws(CryptographyFailure) {
      keyID = try measurementProofKeyID(key, using: &cryptography)
    } catch { throw Refusal(reason: "no mpkId") }
    guard keyID == proofKeyID else { throw Refusal(reason: "mpkId differs") }
    let read: MeasurementConfiguration
    do throws(EncodingFault) {
      read = try MeasurementConfiguration(decoding: configuration.span)
    } catch { throw Refusal(reason: "configuration cannot be read") }
    let made = try makeConfiguration(app: app, device: device, policy: read.policy)
    try Refusal.unless(made.encoded(), configuration, "configuration")
    guard read == made else { throw Refusal(reason: "configuration, read again, differs") }
    let measured: (integrity: FixedBytes<32>, device: FixedBytes<32>)
    do throws(MeasurementFault) {
      measured.integrity = publicBytes(
        try made.integrityMeasurement(app: app, device: device, using: &cryptography))
      measured.device = publicBytes(try made.deviceMeasurement(device: device, using: &cryptography))
    } catch { throw Refusal(reason: "no measurement") }
    try Refusal.unless(array(measured.integrity.bytes), integrity, "integrity")
    try Refusal.unless(array(measured.device.bytes), deviceMeasurement, "device")
  }

  private func makeConfiguration(
    app: [Component], device: [Component], policy: MeasurementPolicy
  ) throws(Refusal) -> MeasurementConfiguration {
    guard let salt = ConfigurationSalt(salt.span) else { throw Refusal(reason: "salt of another length") }
    do throws(EncodingFault) {
      return try MeasurementConfiguration(
        salt: salt, mpkID: proofKeyID, appIDs: app.map { $0.id }, deviceIDs: device.map { $0.id }, created: created,
        policy: policy)
    } catch { throw Refusal(reason: "no configuration has these ids") }
  }

  /// Creates the components, sorted by the bytes of their ids.
  private static func components(_ list: [NamedDigest]) throws(Refusal) -> [Component] {
    var components: [Component] = []
    for item in list.sorted(by: { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }) {
      guard let id = ComponentID(item.id) else { throw Refusal(reason: "a component id is too long") }
      guard let digest = Digest(item.digest.span) else { throw Refusal(reason: "a digest of another length") }
      components.append(Component(id: id, digest: digest))
    }
    return components
  }
}

/// A component in a vector: `[id, digest]`.
private struct NamedDigest {
  let id: String
  let digest: [UInt8]

  static func list(_ node: VectorNode) throws(VectorFault) -> [NamedDigest] {
    var list: [NamedDigest] = []
    for pair in try node.elements() {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault(.wrongValue) }
      list.append(NamedDigest(id: try parts[0].text(), digest: try parts[1].bytes()))
    }
    return list
  }
}

/// The vectors `MeasurementConfiguration`: bytes that a strict reader accepts or refuses.
///
/// Source: docs/protocol.md, Measurement.
struct ConfigurationVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("configuration")
    do throws(EncodingFault) {
      let configuration = try MeasurementConfiguration(decoding: bytes.span)
      return configuration.encoded() == bytes ? .accepted : .differs("configuration, written again,")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `ReleaseKeys`: the root of a release determines its two keys and the id of the measurement proof key.
struct ReleaseKeyVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let rootBytes = try test.bytes("root")
    let expected = [try test.bytes("evidenceKey"), try test.bytes("mpk"), try test.bytes("mpkId")]
    guard let root = ReleaseRoot(copying: rootBytes.span) else { return .refused("root of \(rootBytes.count) bytes") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let evidenceKey = try HoldfastCore.evidenceKey(of: root, using: &cryptography)
      let proofKey = try measurementProofKey(of: root, using: &cryptography)
      let made = [
        array(publicBytes(evidenceKey).bytes), array(publicBytes(proofKey).bytes),
        array(try measurementProofKeyID(proofKey, using: &cryptography).bytes),
      ]
      return made == expected ? .accepted : .refused("a key differs")
    } catch { return .refused("no key") }
  }
}

/// The vectors `Evidence`: bytes that a service accepts or refuses under an evidence key.
struct EvidenceVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("evidence")
    let keyBytes: FixedBytes<32> = try test.node.member("evidenceKey").fixed()
    let evidence: Evidence
    var cryptography = OpenSSLCryptography()
    do throws(EvidenceFault) {
      evidence = try AuthenticEvidence(opening: bytes.span, using: &cryptography) { _ in secret(keyBytes) }.evidence
    } catch { return .refused("\(error)") }
    guard let configuration = test.node.optional("configuration") else { return .accepted }
    if try configuration.bytes() != evidence.configuration.encoded() { return .differs("configuration") }
    if try components(test.node.member("appComponents")) != evidence.app { return .differs("app components") }
    if try components(test.node.member("deviceComponents")) != evidence.device { return .differs("device components") }
    if test.node.value["subject"]?.text != evidence.subject?.description { return .differs("subject") }
    let version = evidence.version.map { [$0.major, $0.minor, $0.patch] }
    let numbers = test.node.value["version"]?.elements?.compactMap { $0.number }
    if numbers != version { return .differs("version") }
    let properties = try test.node.member("properties").elements().map { (node) throws(VectorFault) in try node.text() }
    let noticed = evidence.properties.map { $0.description }
    if properties != noticed { return .differs("properties") }
    if let difference = try difference(in: evidence.statements, test.node) { return .differs(difference) }
    do throws(CryptographyFailure) {
      let again = try evidence.encoded(authenticatedWith: secret(keyBytes), using: &cryptography)
      return again == bytes ? .accepted : .differs("evidence, written again,")
    } catch { return .refused("no MAC") }
  }

  /// Returns the first statement of version 2 that differs; nil if all are as the test says.
  private func difference(in statements: EvidenceStatements?, _ node: VectorNode) throws(VectorFault) -> String? {
    guard let properties = node.optional("appProperties") else { return statements == nil ? nil : "statements" }
    guard let statements else { return "statements" }
    let texts = try properties.elements().map { (node) throws(VectorFault) in try node.text() }
    if texts != statements.appProperties.map({ $0.description }) { return "app properties" }
    if node.value["systemId"]?.text != statements.systemID?.description { return "system id" }
    if node.value["systemVersion"]?.text != statements.systemVersion?.description { return "system version" }
    return node.value["userProperty"]?.text == statements.userProperty?.description ? nil : "user property"
  }

  private func components(_ node: VectorNode) throws(VectorFault) -> [Component] {
    try node.elements().map { (pair) throws(VectorFault) in
      let parts = try pair.elements()
      guard parts.count == 2, let id = ComponentID(try parts[0].text()) else { throw pair.fault(.wrongValue) }
      return Component(id: id, digest: try parts[1].fixed())
    }
  }
}

/// The vectors `Proof`: the proof of a measurement under a nonce and a measurement proof key.
///
/// Source: docs/protocol.md, Measurement.
struct ProofVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let proof = try test.bytes("proof")
    let keyBytes = try test.bytes("mpk")
    let nonceBytes = try test.bytes("nonce")
    let measurementBytes = try test.bytes("measurement")
    guard let key = MeasurementProofKey(copying: keyBytes.span) else {
      return .refused("mpk of \(keyBytes.count) bytes")
    }
    guard let nonce = Nonce(nonceBytes.span) else { return .refused("nonce of \(nonceBytes.count) bytes") }
    guard let measurement = Secret<32>(copying: measurementBytes.span) else {
      return .refused("measurement of \(measurementBytes.count) bytes")
    }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let expected = try measurementProof(key: key, nonce: nonce, measurement: measurement, using: &cryptography)
      return array(expected.bytes) == proof ? .accepted : .refused("proof differs")
    } catch { return .refused("no proof") }
  }
}
