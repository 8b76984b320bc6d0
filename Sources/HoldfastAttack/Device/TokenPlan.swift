import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The claims of a token that the adversary makes.
///
/// Its time of issue is that of the prover's token, or before it, so that no clock floor moves.
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

  /// Makes the token one that had expired when the prover's own token was issued. The device knows that time.
  mutating func expire() {
    issuedAt = max(issuedAt, 2) - 2
    expires = issuedAt + 1
  }

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
}
