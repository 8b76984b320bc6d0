import HoldfastOpenSSL
import TestSupport

import HoldfastCore

/// Every value of the worked example in `docs/protocol.md`, by its label, computed by the core from the example's inputs:
/// component digests, salt, keys, random bytes and signatures.
struct ComputedExample: ~Copyable {
  static let created: UInt64 = 1_790_000_000

  var values: [String: [UInt8]] = [:]
  var cryptography = OpenSSLCryptography()
  let inputs = WorkedExample.shared

  init() throws {
    try measure()
    try agreeOnKeys()
    try makeCOSEToken()
    try makeMACClaims()
    try makeJOSEToken()
    try playRounds()
    try askSealQuestion()
    try playActivation()
  }

  /// The value that was computed under `label` before.
  subscript(label: String) -> [UInt8] {
    get { values[label]! }
    set { values[label] = newValue }
  }

  private mutating func measure() throws {
    self["mpk"] = inputs.bytes("measurement.mpk")
    self["salt"] = inputs.bytes("measurement.salt")
    let app = try components("app")
    let device = try components("device")
    let keyID = try measurementProofKeyID(secret(self["mpk"]), using: &cryptography)
    let configuration = try MeasurementConfiguration(
      salt: fixed(self["salt"]), mpkID: keyID, appIDs: app.map(\.id), deviceIDs: device.map(\.id),
      created: Self.created)
    self["mpk-id"] = [UInt8](keyID.bytes)
    self["mc"] = configuration.encoded()
    self["c"] = array((app + device).sorted { $0.id.precedes($1.id) })
    self["c-device"] = array(device)
    self["im"] = try configuration.integrityMeasurement(app: app, device: device, using: &cryptography)
      .withBytes { [UInt8]($0) }
    self["dm"] = try configuration.deviceMeasurement(device: device, using: &cryptography).withBytes { [UInt8]($0) }
  }

  /// The example's components of one scope, sorted by id.
  private func components(_ scope: String) throws -> [Component] {
    let digests = (inputs.root["measurement"] as! [String: Any])[scope] as! [String: String]
    return digests.map { Component(id: BoundedText(stringLiteral: $0.key), digest: fixed(hex($0.value))) }
      .sorted { $0.id.precedes($1.id) }
  }

  private func array(_ components: [Component]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: components.count)
    for component in components { component.encode(into: &bytes) }
    return bytes
  }

  private mutating func agreeOnKeys() throws {
    for (label, path) in [
      ("issuer-private", "keys.issuer_private"), ("device-private", "keys.device_private"),
      ("ephemeral-private", "keys.ephemeral_private"), ("iv", "keys.iv"),
    ] {
      self[label] = inputs.bytes(path)
    }
    for party in ["issuer", "device"] {
      let point = try P256PrivateKey(scalar: secret(self["\(party)-private"])).publicPoint
      self["\(party)-point"] = [UInt8](point.bytes)
      self["\(party)-kid"] = [UInt8](try keyID(of: point, using: &cryptography).bytes)
    }
    var ephemeral = try P256PrivateKey(scalar: secret(self["ephemeral-private"]))
    var shared = Secret<32>()
    try ephemeral.agree(with: fixed(self["device-point"]), into: &shared)
    self["shared-secret"] = shared.withBytes { [UInt8]($0) }
    let audience = Array((inputs.root["claims_json"] as! [String: Any])["aud"] as! String).map { $0.asciiValue! }
    self["device-id"] = [UInt8](try DeviceID(audience: audience.span).bytes)
  }

  private mutating func askSealQuestion() throws {
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 seal")
    hash.appendCBOR(array: 2)
    hash.appendCBOR(text: "open-safe")
    hash.appendCBOR(array: 2)
    hash.appendCBOR(text: "7")
    hash.appendCBOR(text: "2026-11-21")
    self["seal-question"] = [UInt8]((try hash.finish() as Digest).bytes)
  }
}

extension ComputedExample {
  /// The claims that the device finds in a token, which must be valid.
  mutating func opened(_ token: [UInt8], _ encoding: TokenEncoding) throws -> [UInt8] {
    var key = try P256PrivateKey(scalar: secret(self["device-private"]))
    let keyID: KeyID = fixed(self["device-kid"])
    var trust = MemoryStore()
    trust.issuers[fixed(self["issuer-kid"])] = fixed(self["issuer-point"])
    var opener = TokenOpener()
    var verified = AuthenticatedToken()
    try opener.open(
      token.span, encoding: encoding, key: &key, keyID: keyID, trust: &trust, acceptsUnsigned: false, acceptsMAC: false,
      using: &cryptography, into: &verified)
    if encoding == .jose {
      try opener.decryptJOSE(token.span, key: &key, keyID: keyID, using: &cryptography)
    } else {
      try opener.decryptCOSE(token.span, key: &key, keyID: keyID, using: &cryptography)
    }
    return [UInt8](opener.plaintext.bytes)
  }

  /// AES-256-GCM under the example's IV, the tag at the end.
  mutating func seal(_ plaintext: [UInt8], key: [UInt8], authenticating data: [UInt8]) throws -> [UInt8] {
    let iv = self["iv"]
    var buffer = plaintext
    var tag = AuthenticationTag()
    var message = buffer.mutableSpan
    try cryptography.aes256GCMSeal(
      key: secret(key), nonce: iv.span, authenticating: data.span, message: &message, tag: &tag)
    return buffer + [UInt8](tag.bytes)
  }
}
