import HoldfastCore
import HoldfastFormats

/// The requested properties of a measurement token.
public struct IssuanceOptions: Sendable {
  /// The largest number of commands in a token.
  static let maximumCommandCount = 16

  /// The format of the measurement token.
  package var format: MeasurementTokenFormat = .cose
  /// The validity, in seconds; nil for 90 days.
  public var validitySeconds: UInt64?
  /// The optional claims that the token must have.
  package var claims: [Claim: ClaimValue] = [:]
  /// The conditions for the prover, which are signed next to the token: ``IssuedToken/terms``.
  public var conditions = Conditions()

  /// Creates options for a token in COSE that is valid for 90 days, for any command and any number of rounds.
  public init() {}

  /// The encoding of the token: `COSE_Sign1` in `COSE_Encrypt`, or a compact JWS in a compact JWE with `ECDH-ES`.
  public var encoding: TokenEncoding {
    get { format.encoding }
    set { format = newValue == .jose ? .jose : .cose }
  }

  /// The commands that the token allows (claim `cmd`), at most 16 names of 1 to 32 bytes; nil for all that the device's policy
  /// allows.
  public var commands: [String]? {
    get { if case .texts(let names)? = claims[.commands] { names } else { nil } }
    set { claims[.commands] = newValue.map { .texts($0) } }
  }

  /// The number of rounds that a device accepts with the token (claim `max`), at most 2^53 - 1; nil for no limit.
  public var maximumUses: UInt64? {
    get { if case .number(let number)? = claims[.maximumUses] { number } else { nil } }
    set { claims[.maximumUses] = newValue.map { .number($0) } }
  }

  /// The only user whose codes go with the token (claim `usr`), 1 to 32 bytes; nil for any user of the device.
  public var user: String? {
    get { if case .text(let name)? = claims[.user] { name } else { nil } }
    set { claims[.user] = newValue.map { .text($0) } }
  }

  /// The options for a token of an app, in which a policy determines what they leave open.
  func completed(
    by policy: ServicePolicy, for app: borrowing AppraisedApp, at device: DeviceID
  ) -> IssuanceOptions {
    var completed = self
    completed.validitySeconds = validitySeconds ?? policy.tokenSeconds
    completed.claims = policy.claims.merging(claims) { $1 }
    completed.conditions = policy.conditions(of: app.subject, app.version, for: device)
    return completed
  }
}

extension MeasurementClaims {
  /// Returns the claims of a token for an appraised app.
  ///
  /// - Throws: `claims`, `tooManyCommands`; `cryptography` if the random source fails.
  static func forToken(
    of app: borrowing AppraisedApp, from issuer: BoundedText<64>, for device: DeviceID, options: IssuanceOptions,
    generation: UInt64, now: UInt64, random: inout some RandomSource & ~Copyable
  ) throws(TokenWritingFault) -> MeasurementClaims {
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw .cryptography }
    let validity = options.validitySeconds ?? 90 * 24 * 60 * 60
    var claims = MeasurementClaims(
      issuer: issuer, subject: app.subject, audience: device,
      expires: now + min(validity, maximumInteger - min(now, maximumInteger)), issuedAt: now, tokenID: tokenID,
      integrity: app.integrity.copy(), device: app.device.copy(), proofKey: app.proofKey.copy(), generation: generation)
    claims.set(version: app.version)
    for (claim, value) in options.claims {
      switch value {
      case .texts(let texts) where texts.count > IssuanceOptions.maximumCommandCount: throw .tooManyCommands
      case .texts(let texts) where texts.contains(""): throw .claims
      case .text(""): throw .claims
      default: break
      }
      do throws(EncodingFault) { try claims.set(claim, to: value) } catch { throw .claims }
    }
    try claims.checkRanges()
    return claims
  }

  /// Checks that the numbers are in range, and `iat` is below `exp`.
  ///
  /// - Throws: `claims`.
  func checkRanges() throws(TokenWritingFault) {
    for claim in Claim.all {
      switch self[claim] {
      case .number(let number): guard number <= maximumInteger else { throw .claims }
      case .version(let version):
        guard max(version.major, version.minor, version.patch) <= maximumInteger else { throw .claims }
      case .text, .texts, .bytes, nil: break
      }
    }
    guard issuedAt < expires else { throw .claims }
  }
}
