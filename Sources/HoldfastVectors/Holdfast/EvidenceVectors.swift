import HoldfastCore
import HoldfastOpenSSL

/// `ReleaseKeys`: the root of a release gives its two keys and the id of the measurement proof key.
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

/// `Evidence`: bytes that a service takes or refuses under an evidence key.
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
    do throws(CryptographyFailure) {
      let again = try evidence.encoded(authenticatedWith: secret(keyBytes), using: &cryptography)
      return again == bytes ? .accepted : .differs("evidence, written again,")
    } catch { return .refused("no MAC") }
  }

  private func components(_ node: VectorNode) throws(VectorFault) -> [Component] {
    try node.elements().map { (pair) throws(VectorFault) in
      let parts = try pair.elements()
      guard parts.count == 2, let id = ComponentID(try parts[0].text()) else { throw pair.fault(.wrongValue) }
      return Component(id: id, digest: try parts[1].fixed())
    }
  }
}
