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
  private var values: [Claim: ClaimValue] = [:]
  private var secrets: [Claim: [UInt8]] = [:]

  init(_ node: VectorNode) throws(VectorFault) {
    guard let members = node.value.members else { throw node.fault(.wrongType) }
    var names: Set<String> = []
    for claim in Claim.all {
      names.insert(claim.vectorName)
      let member = claim.row.isRequired ? try node.member(claim.vectorName) : node.optional(claim.vectorName)
      guard let member else { continue }
      switch claim.row.kind {
      case .text64, .text32: values[claim] = .text(try member.text())
      case .number: values[claim] = .number(try member.number())
      case .deviceID, .bytes16: values[claim] = .bytes(array((try member.fixed() as FixedBytes<16>).bytes))
      case .secret32: secrets[claim] = array((try member.fixed() as FixedBytes<32>).bytes)
      case .secret16: secrets[claim] = array((try member.fixed() as FixedBytes<16>).bytes)
      case .commands:
        values[claim] = .texts(try member.elements().map { (command) throws(VectorFault) in try command.text() })
      case .version:
        let version = try Self.version(member)
        values[claim] = version == .zero ? nil : .version(version)
      }
    }
    for (name, _) in members where !names.contains(name) {
      throw try node.member(name).fault(.wrongValue)
    }
  }

  private static func version(_ node: VectorNode) throws(VectorFault) -> AppVersion {
    let numbers = try node.elements()
    guard numbers.count == 3 else { throw node.fault(.wrongValue) }
    return AppVersion(
      major: try numbers[0].number(), minor: try numbers[1].number(), patch: try numbers[2].number())
  }

  /// Returns the name of the first claim that differs; nil if all are equal.
  func difference(from claims: borrowing MeasurementClaims) -> String? {
    for claim in Claim.all {
      var isSame = claims[claim] == values[claim]
      if let secret = secrets[claim] { claims.withSecret(claim) { isSame = array($0) == secret } }
      if !isSame { return claim.vectorName }
    }
    return nil
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
func secret<Kind, let count: Int>(_ bytes: TypedBytes<Kind, count>) -> Secret<count> {
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
