import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// The vectors `AttestationToken`: tokens of an attestation service that a backend opens for one device, at one time.
///
/// Source: docs/protocol.md, Attestation token.
struct AttestationVectors: ReplayableGroup {
  private let encryption: [UInt8]
  private let signature: SignatureKey
  private let device: DeviceDescriptor
  private let policy: ServicePolicy
  private let now: UInt64

  private enum SignatureKey {
    case point(P256Point)
    case secret([UInt8])
  }

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    let (scalar, point) = (try group.member("backendPrivateKey"), try group.member("devicePublicKey"))
    encryption = try Self.jwk(scalar)
    let key = try group.member("signatureKey")
    signature =
      try group.member("signatureAlgorithm").text() == "HS256" ? .secret(try key.bytes()) : .point(try key.fixed())
    let (deviceID, publicPoint): (DeviceID, P256Point) = (try group.member("deviceId").fixed(), try point.fixed())
    do throws(CryptographyFailure) {
      device = try DeviceDescriptor(deviceID: deviceID, publicPoint: publicPoint)
    } catch { throw point.fault(.keysDiffer) }
    let (issuer, audience) = (try group.member("issuer"), try group.member("audience"))
    guard let service = BoundedText<64>(try issuer.text()) else { throw issuer.fault(.wrongValue) }
    guard let backend = BoundedText<255>(try audience.text()) else { throw audience.fault(.wrongValue) }
    policy = ServicePolicy(attestationIssuer: service, audience: backend)
    now = try group.member("now").number()
  }

  /// Returns the private key of a backend as a JWK with its algorithms.
  private static func jwk(_ node: VectorNode) throws(VectorFault) -> [UInt8] {
    let scalar: FixedBytes<32> = try node.fixed()
    let point: P256Point
    do throws(CryptographyFailure) { point = try P256PrivateKey(scalar: secret(scalar)).publicPoint } catch {
      throw node.fault(.wrongValue)
    }
    let bytes = array(point.bytes)
    return JSONValue.object([
      ("kty", .string("EC")), ("crv", .string("P-256")),
      ("x", .string(base64URL(bytes.span.extracting(1..<33)))),
      ("y", .string(base64URL(bytes.span.extracting(33..<65)))),
      ("d", .string(base64URL(scalar.bytes))), ("alg", .string("ECDH-ES")), ("enc", .string("A256GCM")),
      ("kid", .string("backend")),
    ]).compact()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let token = try test.bytes("token")
    let expected = test.result == .invalid ? nil : try ExpectedApp(test)
    let key: JWEKey
    do throws(JOSEFault) { key = try JWEKey(parsing: encryption.span) } catch { return .refused("no key") }
    var opener: AttestationOpener
    switch signature {
    case .point(let point): opener = AttestationOpener(encryption: key, signing: .es256Public(point))
    case .secret(let secret):
      opener = AttestationOpener(encryption: key, signing: .hs256(SecretBytes(copying: secret.span)))
    }
    do throws(IssuanceRefusal) {
      let attested = try opener.open(token.span, for: device, under: policy, now: now)
      guard let expected else { return .accepted }
      if attested.app.subject.description != expected.subject { return .differs("subject") }
      if attested.app.version != expected.version { return .differs("version") }
      if publicBytes(attested.app.integrity) != expected.integrity { return .differs("integrity") }
      if publicBytes(attested.app.device) != expected.device { return .differs("device") }
      return publicBytes(attested.app.proofKey) == expected.proofKey ? .accepted : .differs("proofKey")
    } catch { return .refused("\(error)") }
  }
}

/// The app that a valid test expects.
private struct ExpectedApp {
  let subject: String
  let version: AppVersion
  let integrity, device: FixedBytes<32>
  let proofKey: FixedBytes<16>

  init(_ test: VectorTest) throws(VectorFault) {
    subject = try test.node.member("subject").text()
    let numbers = try test.node.member("version")
    if numbers.isNull {
      version = .zero
    } else {
      let parts = try numbers.elements().map { (node) throws(VectorFault) in try node.number() }
      guard parts.count == 3 else { throw numbers.fault(.wrongValue) }
      version = AppVersion(major: parts[0], minor: parts[1], patch: parts[2])
    }
    integrity = try test.node.member("integrity").fixed()
    device = try test.node.member("device").fixed()
    proofKey = try test.node.member("proofKey").fixed()
  }
}
