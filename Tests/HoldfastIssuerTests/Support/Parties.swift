import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport

import HoldfastIssuer

/// An app like the worked example's, a device, a service and a backend around records in memory.
struct Parties {
  let example: WorkedExample
  var policy = ServicePolicy()
  /// When the example's baseline was taken.
  var now: UInt64 = 1_790_000_000
  var properties: [BoundedText<32>] = []
  var signature = ServiceFolder.AttestationSignature.hs256

  init() throws {
    example = try WorkedExample()
    policy.images = [image(proofKey: try configuration().mpkID)]
    policy.devices = .firstCome
  }

  func text<let capacity: Int>(_ text: String) -> BoundedText<capacity> { BoundedText(text)! }

  /// The example's image as the owner approved it, or under another name or version.
  func image(
    subject: String = "example-app", version: AppVersion = AppVersion(major: 1, minor: 2, patch: 3),
    proofKey: KeyID? = nil
  ) -> ApprovedImage {
    ApprovedImage(
      digest: digest(example.root["measurement"]?["app"]?["app.image"]?.text ?? ""), subject: text(subject),
      version: version, proofKey: proofKey)
  }

  /// The example has a measurement proof key and no root: this evidence key belongs to the tests.
  static let evidenceKey = [UInt8](0x40..<0x60)

  /// The keys of the example's release, as a service's file has them.
  var releaseKeys: [UInt8] { example.bytes("measurement.mpk") + Self.evidenceKey }

  func components(_ scope: String) throws -> [Component] {
    let members = example.root["measurement"]?[scope]?.members ?? []
    return members.map { Component(id: text($0.0), digest: digest($0.1.text ?? "")) }
  }

  func digest(_ digits: String) -> Digest {
    let bytes = hex(digits)
    return Digest(bytes.span)!
  }

  func configuration() throws -> MeasurementConfiguration {
    let bytes = example.bytes("measurement.configuration")
    return try MeasurementConfiguration(decoding: bytes.span)
  }

  /// The example's evidence, authenticated with its release's key or with another one.
  func evidence(
    configuration: MeasurementConfiguration? = nil, app: [Component]? = nil, device: [Component]? = nil,
    subject: String? = nil, version: AppVersion? = nil, authenticatedWith key: [UInt8] = evidenceKey
  ) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let evidence = try Evidence(
      configuration: configuration ?? self.configuration(), app: app ?? components("app"),
      device: device ?? components("device"), subject: subject.map { text($0) }, version: version,
      properties: properties)
    let key = EvidenceKey(copying: key.span)!
    return try evidence.encoded(authenticatedWith: key, using: &cryptography)
  }

  /// The example's device, or another one.
  func device(id: DeviceID? = nil) throws -> DeviceDescriptor {
    try DeviceDescriptor(deviceID: id ?? example.deviceID, publicPoint: example.fixed("keys.device_point"))
  }

  func encryptionKey() throws -> JWEKey {
    let scalar = [UInt8](repeating: 3, count: 32)
    let key = try ECPrivateKey(curve: .p256, scalar: scalar.span)
    return try JWEKey(key, management: .ecdhES, encryption: .a256GCM, keyID: nil)
  }

  func account() -> SecretBytes { SecretBytes(zeros: 32) }

  func signingKey() throws -> JWSKey {
    guard signature == .es256 else { return .hs256(account()) }
    let scalar = [UInt8](repeating: 5, count: 32)
    return .es256(try P256PrivateKey(scalar: Secret<32>(copying: scalar.span)!))
  }

  func service(_ seen: MemorySeen = MemorySeen()) throws -> AttestationService<MemorySeen> {
    var cryptography = OpenSSLCryptography()
    let keys = releaseKeys
    let registry = try ReleaseKeyRegistry(SecretBytes(copying: keys.span), using: &cryptography)!
    return AttestationService(
      account: account(), signing: try signingKey(), encryption: try encryptionKey(), releases: registry,
      policy: policy, seen: seen)
  }

  func backend(_ issued: MemoryIssued = MemoryIssued()) throws -> Backend<MemoryIssued> {
    Backend(
      encryption: try encryptionKey(), signing: try signingKey(),
      issuer: IssuerSecrets(signing: try example.key("keys.issuer_private"), macSecret: example.macSecret()),
      policy: policy, issued: issued)
  }

  /// One appraisal by a service that remembers nothing.
  func appraise(_ evidence: [UInt8]? = nil, at seconds: UInt64? = nil) throws -> Appraisal {
    var service = try service()
    var random = SystemRandom()
    let evidence = try evidence ?? self.evidence()
    return try service.appraise(
      evidence.span, for: device(), clock: TestClock(seconds: seconds ?? now), random: &random)
  }

  /// An attestation token for a device.
  func attestation(for device: DeviceDescriptor? = nil) throws -> [UInt8] {
    var service = try service()
    var random = SystemRandom()
    let evidence = try evidence()
    let appraisal = try service.appraise(
      evidence.span, for: device ?? self.device(), clock: TestClock(seconds: now), random: &random)
    guard case .approved(let token, _) = appraisal else { throw UnreadableFile() }
    return token
  }
}
