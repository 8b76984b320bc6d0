import HoldfastCore
import HoldfastJSON
import HoldfastKeys

/// What the attestation service approves and what the backend issues: the file `policy.json`.
///
/// An image that is not named is not approved.
public struct ServicePolicy: Sendable, Equatable {
  /// `iss` of measurement tokens.
  public var issuer: BoundedText<64>
  /// `iss` of attestation tokens.
  public var attestationIssuer: BoundedText<64>
  /// `aud` of attestation tokens: the API domain of the backend.
  public var audience: BoundedText<255>
  /// SHA-256 digests of the `app.image` components that are approved.
  public var imageDigests: [Digest] = []
  /// Properties with which no app is approved.
  public var refusedProperties: [BoundedText<32>] = ["debugger", "injection", "agent"].compactMap { BoundedText($0) }
  /// `sub` where an attestation token names no app.
  public var subject = BoundedText<64>("app" as StaticString)
  /// How long an attestation token is valid.
  public var attestationSeconds: UInt64 = 5 * 60
  /// How long a measurement token is valid.
  public var tokenSeconds: UInt64 = 90 * 24 * 60 * 60
  /// `cmd` of measurement tokens; nil to leave it out.
  public var commands: [BoundedText<32>]?
  /// `max` of measurement tokens; nil to leave it out.
  public var maximumUses: UInt64?

  /// The longest policy, in bytes.
  public static let maximumByteCount = 1 << 20

  public init(
    issuer: BoundedText<64> = BoundedText("issuer.example" as StaticString),
    attestationIssuer: BoundedText<64> = BoundedText("attestation.example" as StaticString),
    audience: BoundedText<255> = BoundedText("api.example" as StaticString)
  ) {
    self.issuer = issuer
    self.attestationIssuer = attestationIssuer
    self.audience = audience
  }

  /// The policy as strict JSON; what is absent stays absent.
  public var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("issuer", .string(issuer.description)), ("attestation_issuer", .string(attestationIssuer.description)),
      ("audience", .string(audience.description)),
      ("image_digests", .array(imageDigests.map { .string(hexadecimal($0)) })),
      ("refused_properties", .array(refusedProperties.map { .string($0.description) })),
      ("subject", .string(subject.description)), ("attestation_seconds", .integer(attestationSeconds)),
      ("token_seconds", .integer(tokenSeconds)),
    ]
    if let commands { members.append(("commands", .array(commands.map { .string($0.description) }))) }
    if let maximumUses { members.append(("maximum_uses", .integer(maximumUses))) }
    return .object(members)
  }
}
