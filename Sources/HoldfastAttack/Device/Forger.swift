import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The claims of a token that the adversary makes.
///
/// Its time of issue is that of the prover's token, so that no clock floor moves.
struct TokenPlan {
  var audience: DeviceID
  var issuedAt: UInt64
  var expires: UInt64
  var generation: UInt64
  var subject: BoundedText<64>
  var version: AppVersion
  var tokenID: TokenID
  var commands: [String]?
  var maximumUses: UInt64?
  var user: BoundedText<32>?
  var isForAnotherKey = false

  /// Returns the claims for a prover.
  func claims(of persona: Persona) -> MeasurementClaims {
    var claims = MeasurementClaims(
      issuer: BoundedText("adversary"), subject: subject, audience: audience, expires: expires,
      issuedAt: issuedAt, tokenID: tokenID, integrity: persona.integrity.copy(), device: persona.device.copy(),
      proofKey: persona.proofKey.copy(), generation: generation)
    if version != .zero { claims.set(version: version) }
    if let maximumUses { claims.set(.maximumUses, maximumUses) }
    if let user { claims.set(.user, user) }
    if let commands {
      var list = CommandList()
      for command in commands { try? list.append(BoundedText<32>(command) ?? BoundedText()) }
      claims.set(commands: list)
    }
    return claims
  }
}

extension Adversary {
  /// Returns the claims of the prover's token, with another id and a short life.
  mutating func plan() throws(AttackFault) -> TokenPlan {
    guard let report else { throw .notTried("the enrolment has no report of its token: enrol again") }
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw .cryptography }
    let now = max(deviceTime ?? report.issued, report.issued)
    return TokenPlan(
      audience: descriptor.deviceID, issuedAt: report.issued, expires: min(now + 600, report.expires),
      generation: report.number(.generation) ?? 1,
      subject: report.text(.subject).flatMap { BoundedText<64>($0) } ?? BoundedText("app"), version: report.version,
      tokenID: tokenID)
  }

  /// Issues a token with the trusted issuer's key.
  mutating func issue(_ plan: TokenPlan, of persona: Persona) throws(AttackFault) -> [UInt8] {
    var point = descriptor.publicPoint
    if plan.isForAnotherKey {
      do throws(CryptographyFailure) { point = try P256PrivateKey().publicPoint } catch { throw .cryptography }
    }
    guard let issuer else { throw .notTried("it needs the issuer's key: --service") }
    return try issuer.write(plan.claims(of: persona), to: point, random: &random)
  }
}

/// The keys of an issuer that the device trusts. Only one thread uses them.
final class TrustedIssuer {
  private var secrets: IssuerSecrets<P256PrivateKey>

  init(_ secrets: consuming IssuerSecrets<P256PrivateKey>) { self.secrets = secrets }

  /// Lets `body` sign with the key.
  func signing<Result>(
    _ body: (inout P256PrivateKey) throws(CryptographyFailure) -> Result
  ) throws(CryptographyFailure) -> Result {
    try body(&secrets.signing)
  }

  /// Signs claims, and encrypts them to a device's key.
  func write(
    _ claims: borrowing MeasurementClaims, to point: P256Point, random: inout SystemRandom
  ) throws(AttackFault) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    do throws(TokenWritingFault) {
      return try MeasurementTokenWriter().write(
        claims, to: point, issuer: &secrets, random: &random, using: &cryptography)
    } catch { throw .cryptography }
  }
}

/// A maker of tokens without an issuer's key.
struct Forger: ~Copyable {
  private var secrets: IssuerSecrets<P256PrivateKey>
  let ownKeyID: KeyID
  /// The public key of an issuer that the device trusts, and its id.
  let trustedPoint: P256Point?
  let trustedKeyID: KeyID?

  init(trusted: P256Point?) throws(AttackFault) {
    var cryptography = OpenSSLCryptography()
    var known: KeyID?
    let own: KeyID
    let key: P256PrivateKey
    do throws(CryptographyFailure) {
      if let trusted { known = try keyID(of: trusted, using: &cryptography) }
      let drawn = try P256PrivateKey()
      own = try keyID(of: drawn.publicPoint, using: &cryptography)
      key = drawn
    } catch { throw .cryptography }
    (trustedPoint, ownKeyID) = (trusted, own)
    trustedKeyID = known
    secrets = IssuerSecrets(signing: key)
  }

  /// Returns claims without a signature.
  static func encoded(_ claims: borrowing MeasurementClaims) throws(CryptographyFailure) -> COSEText {
    var payload = COSEText()
    do throws(EncodingFault) { try claims.appendCBOR(to: &payload) } catch { throw CryptographyFailure() }
    return payload
  }

  /// Signs claims with the adversary's key, under any key id.
  mutating func signed(
    _ claims: borrowing MeasurementClaims, keyID: KeyID
  ) throws(CryptographyFailure) -> COSEText {
    let payload = try Self.encoded(claims)
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    COSEClaimsWriter(keyID: keyID, isMAC: false).append(contextOf: payload.bytes, to: &hash)
    let signature = try secrets.signing.sign(try hash.finish())
    return try message(claims, seal: [UInt8](signature.bytes), keyID: keyID)
  }

  /// Puts any bytes in the place of the signature.
  func message(
    _ claims: borrowing MeasurementClaims, seal: [UInt8], keyID: KeyID, isMAC: Bool = false
  ) throws(CryptographyFailure) -> COSEText {
    let payload = try Self.encoded(claims)
    do throws(EncodingFault) {
      return try COSEClaimsWriter(keyID: keyID, isMAC: isMAC).message(payload: payload.bytes, seal: seal.span)
    } catch { throw CryptographyFailure() }
  }

  /// Authenticates claims with a MAC under any key.
  func authenticated(
    _ claims: borrowing MeasurementClaims, key: [UInt8], keyID: KeyID
  ) throws(CryptographyFailure) -> COSEText {
    let payload = try Self.encoded(claims)
    var cryptography = OpenSSLCryptography()
    var mac = try cryptography.hmacSHA256(key: key.span)
    COSEClaimsWriter(keyID: keyID, isMAC: true).append(contextOf: payload.bytes, to: &mac)
    let tag: Digest = try mac.finish()
    return try message(claims, seal: [UInt8](tag.bytes), keyID: keyID, isMAC: true)
  }

  /// Encrypts a token to the device.
  static func encrypt(_ text: inout COSEText, to device: P256Point) throws(CryptographyFailure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    var ephemeral = try P256PrivateKey()
    let vector: FixedBytes<12>
    do throws(RandomFailure) { vector = try random.fixedBytes() } catch { throw CryptographyFailure() }
    let encrypter = COSEEncrypter(device: device, deviceKeyID: try keyID(of: device, using: &cryptography))
    return try encrypter.message(
      plaintext: &text, ephemeral: &ephemeral, initializationVector: vector, using: &cryptography)
  }

  /// Makes a token in JOSE, signed with the adversary's key.
  mutating func jose(_ claims: borrowing MeasurementClaims, to device: P256Point) throws(AttackFault) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    do throws(TokenWritingFault) {
      return try MeasurementTokenWriter(format: .jose).write(
        claims, to: device, issuer: &secrets, random: &random, using: &cryptography)
    } catch { throw .cryptography }
  }
}

/// The parts of a token in which a bit is flipped.
enum TokenPart {
  /// Returns a name and the index of a byte for each part. The bytes are those of an encrypted token, and no secret.
  static func places(in token: [UInt8], _ encoding: TokenEncoding) -> [(String, Int)] {
    encoding == .jose ? josePlaces(token) : cosePlaces(token)
  }

  private static func josePlaces(_ token: [UInt8]) -> [(String, Int)] {
    let names = ["the header", "the key", "the initialization vector", "the ciphertext", "the tag"]
    let dots = token.indices.filter { token[$0] == 0x2e }
    let starts = [0] + dots.map { $0 + 1 }
    let ends = dots + [token.count]
    return zip(names, zip(starts, ends)).compactMap { name, range in
      // The first character has six bits that count.
      range.0 < range.1 ? (name, range.0) : nil
    }
  }

  private static func cosePlaces(_ token: [UInt8]) -> [(String, Int)] {
    var reader = CBORReader(token.span)
    var places = [("the tag of the message", 1)]
    do throws(EncodingFault) {
      try reader.tag(COSE.encryptTag)
      try reader.array(of: 4)
      _ = try reader.byteString()
      places.append(("the header of the content", reader.position - 1))
      guard try reader.mapHead() == 1 else { return places }
      _ = try reader.integer()
      _ = try reader.byteString()
      places.append(("the initialization vector", reader.position - 1))
      let ciphertext = try reader.byteString()
      places.append(("the ciphertext", reader.position - ciphertext.count))
      places.append(("the tag of the ciphertext", reader.position - 1))
      try reader.array(of: 1)
      try reader.array(of: 3)
      _ = try reader.byteString()
      places.append(("the device's key id", reader.position - 1))
      guard try reader.mapHead() == 1 else { return places }
      _ = try reader.integer()
      guard try reader.mapHead() == 4 else { return places }
      for name in ["the type of the key", "the curve", "the first coordinate", "the second coordinate"] {
        _ = try reader.integer()
        try reader.skipValue()
        places.append((name, reader.position - 1))
      }
      places.append(("the end", token.count - 1))
    } catch { return places }
    return places
  }
}
