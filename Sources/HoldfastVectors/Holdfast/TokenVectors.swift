import HoldfastCore
import HoldfastOpenSSL
import HoldfastReplay

/// The vectors `MeasurementTokenCOSE` and `MeasurementTokenJOSE`: tokens that a device opens or refuses, and their
/// claims.
///
/// Source: docs/protocol.md, Measurement token. The times, the generation floor and the commands are not checked.
struct TokenVectors<Form: TokenForm>: ReplayableGroup {
  private let parties: Parties
  private let acceptsUnsigned: Bool
  private let acceptsMAC: Bool

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    parties = try Parties(group)
    acceptsUnsigned = try group.member("acceptUnsigned").flag()
    acceptsMAC = try group.optional("acceptMac")?.flag() ?? false
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let token = try test.bytes("token")
    let claims = test.result == .valid ? try test.node.member("claims") : test.node.optional("claims")
    let expected: ExpectedClaims?
    if let claims { expected = try ExpectedClaims(claims) } else { expected = nil }
    do throws(Refusal) {
      let verified = try parties.open(
        token, encoding: Form.encoding, acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC)
      guard let expected, let name = expected.difference(from: verified.claims) else { return .accepted }
      return .differs("claims.\(name)")
    } catch { return .refused(error.reason) }
  }
}

/// The encoding of a group's tokens.
protocol TokenForm {
  static var encoding: TokenEncoding { get }
}

enum COSEToken: TokenForm {
  static var encoding: TokenEncoding { .cose }
}

enum JOSEToken: TokenForm {
  static var encoding: TokenEncoding { .jose }
}

/// The claims that a vector expects in a token.
struct ExpectedClaims {
  private let issuer: String
  private let subject: String
  private let audience: DeviceID
  private let expires: UInt64
  private let issuedAt: UInt64
  private let tokenID: TokenID
  private let integrity: FixedBytes<32>
  private let device: FixedBytes<32>
  private let proofKey: FixedBytes<16>
  private let generation: UInt64
  private let maximumUses: UInt64?
  private let commands: [String]?
  private let version: AppVersion
  private let user: String?

  init(_ node: VectorNode) throws(VectorFault) {
    guard let members = node.value.members else { throw node.fault(.wrongType) }
    for (name, _) in members where !Self.names.contains(name) {
      throw try node.member(name).fault(.wrongValue)
    }
    issuer = try node.member("issuer").text()
    subject = try node.member("subject").text()
    audience = try node.member("audience").fixed()
    expires = try node.member("expires").number()
    issuedAt = try node.member("issuedAt").number()
    tokenID = try node.member("tokenId").fixed()
    integrity = try node.member("integrity").fixed()
    device = try node.member("device").fixed()
    proofKey = try node.member("proofKey").fixed()
    generation = try node.member("generation").number()
    maximumUses = try node.optional("maximumUses")?.number()
    commands = try node.optional("commands").map { (list) throws(VectorFault) in
      try list.elements().map { (command) throws(VectorFault) in try command.text() }
    }
    version = try node.optional("version").map { (list) throws(VectorFault) in try Self.version(list) } ?? .zero
    user = try node.optional("user")?.text()
  }

  private static let names: Set = [
    "issuer", "subject", "audience", "expires", "issuedAt", "tokenId", "integrity", "device", "proofKey", "generation",
    "maximumUses", "commands", "version", "user",
  ]

  private static func version(_ node: VectorNode) throws(VectorFault) -> AppVersion {
    let numbers = try node.elements()
    guard numbers.count == 3 else { throw node.fault(.wrongValue) }
    return AppVersion(
      major: try numbers[0].number(), minor: try numbers[1].number(), patch: try numbers[2].number())
  }

  /// Returns the name of the first claim that differs; nil if all are equal.
  func difference(from claims: borrowing MeasurementClaims) -> String? {
    if !same(claims.issuer, issuer) { return "issuer" }
    if !same(claims.subject, subject) { return "subject" }
    if claims.audience != audience { return "audience" }
    if claims.expires != expires { return "expires" }
    if claims.issuedAt != issuedAt { return "issuedAt" }
    if claims.tokenID != tokenID { return "tokenId" }
    if publicBytes(claims.integrity) != integrity { return "integrity" }
    if publicBytes(claims.device) != device { return "device" }
    if publicBytes(claims.proofKey) != proofKey { return "proofKey" }
    if claims.generation != generation { return "generation" }
    return optionalDifference(from: claims)
  }

  private func optionalDifference(from claims: borrowing MeasurementClaims) -> String? {
    if claims.maximumUses != maximumUses { return "maximumUses" }
    if claims.version != version { return "version" }
    switch (claims.user, user) {
    case (nil, nil): break
    case (let given?, let expected?): if !same(given, expected) { return "user" }
    default: return "user"
    }
    return isSame(claims.commands, commands) ? nil : "commands"
  }

  private func isSame(_ list: borrowing CommandList?, _ expected: [String]?) -> Bool {
    guard let expected else { return list == nil }
    switch list {
    case .some(let given):
      return given.count == expected.count && expected.indices.allSatisfy { same(given[$0], expected[$0]) }
    case .none: return false
    }
  }

  private func same<let capacity: Int>(_ text: BoundedText<capacity>, _ expected: String) -> Bool {
    array(text.bytes) == Array(expected.utf8)
  }
}

/// The device of a group of tests with the issuer that it trusts and, if the group has one, an issuer's MAC key.
struct Parties {
  private let devicePrivateKey: FixedBytes<32>
  let deviceKeyID: KeyID
  let deviceID: DeviceID
  let trust: TrustedIssuers

  /// Reads the keys, and checks that they match each other and their ids.
  init(_ group: VectorNode) throws(VectorFault) {
    devicePrivateKey = try group.member("devicePrivateKey").fixed()
    let devicePublicKey = try group.member("devicePublicKey")
    let deviceKeyID = try group.member("deviceKid")
    let issuerPublicKey = try group.member("issuerPublicKey")
    let issuerKeyID = try group.member("issuerKid")
    deviceID = try group.member("deviceId").fixed()
    self.deviceKeyID = try deviceKeyID.fixed()
    let macKey = group.optional("macKey")
    let macKeyID = group.optional("macKid")
    var shared: TrustedIssuers.Shared?
    if let macKey, let macKeyID {
      shared = TrustedIssuers.Shared(keyID: try macKeyID.fixed(), key: try macKey.fixed())
    }
    trust = TrustedIssuers(
      keyID: try issuerKeyID.fixed(), publicKey: try issuerPublicKey.fixed(), shared: shared)
    let devicePoint: P256Point = try devicePublicKey.fixed()

    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      guard try deviceKey().publicPoint == devicePoint else { throw CryptographyFailure() }
    } catch { throw devicePublicKey.fault(.keysDiffer) }
    do throws(CryptographyFailure) {
      guard try keyID(of: devicePoint, using: &cryptography) == self.deviceKeyID else { throw CryptographyFailure() }
    } catch { throw deviceKeyID.fault(.keysDiffer) }
    do throws(CryptographyFailure) {
      guard try keyID(of: trust.publicKey, using: &cryptography) == trust.keyID else { throw CryptographyFailure() }
    } catch { throw issuerKeyID.fault(.keysDiffer) }
    guard let shared, let macKeyID else {
      if let lonely = macKey ?? macKeyID { throw lonely.fault(.keysDiffer) }
      return
    }
    do throws(CryptographyFailure) {
      let id = try keyID(of: .mac(secret(shared.key)), using: &cryptography)
      guard id == shared.keyID else { throw CryptographyFailure() }
    } catch { throw macKeyID.fault(.keysDiffer) }
  }

  /// Returns the device's private key.
  func deviceKey() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: secret(devicePrivateKey))
  }

  /// Opens a token as this device does: decrypts it, and checks that it comes from a trusted issuer and is for this
  /// device.
  func open(
    _ token: [UInt8], encoding: TokenEncoding, acceptsUnsigned: Bool = false, acceptsMAC: Bool = false
  ) throws(Refusal) -> AuthenticatedToken {
    var opener = TokenOpener()
    var trust = trust
    var cryptography = OpenSSLCryptography()
    var key: P256PrivateKey
    do throws(CryptographyFailure) { key = try deviceKey() } catch { throw Refusal(reason: "no device key") }
    var verified = AuthenticatedToken()
    do throws(TokenFault) {
      try opener.open(
        token.span, encoding: encoding, key: &key, keyID: deviceKeyID, trust: &trust,
        acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC, using: &cryptography, into: &verified)
    } catch { throw Refusal(reason: "token: \(error)") }
    guard verified.claims.audience == deviceID else { throw Refusal(reason: "token: another audience") }
    return verified
  }
}

/// Converts a key of a vector to a secret. The vectors are public, but the functions under test take secrets.
func secret<let count: Int>(_ bytes: FixedBytes<count>) -> Secret<count> {
  var secret = Secret<count>()
  secret.withMutableBytes { (output: inout MutableSpan<UInt8>) in
    for index in output.indices { output[index] = bytes[index] }
  }
  return secret
}

/// Returns the bytes of a secret that a vector also contains.
func publicBytes<let count: Int>(_ secret: borrowing Secret<count>) -> FixedBytes<count> {
  var bytes = FixedBytes<count>()
  secret.withBytes { for index in $0.indices { bytes[index] = $0[index] } }
  return bytes
}

/// Copies the bytes of a span.
func array(_ span: Span<UInt8>) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(span.count)
  for index in span.indices { bytes.append(span[index]) }
  return bytes
}
