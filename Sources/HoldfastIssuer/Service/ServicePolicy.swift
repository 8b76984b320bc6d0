import HoldfastCore
import HoldfastJSON
import HoldfastKeys

/// The owner's rules for the attestation service and the backend: the file `policy.json`.
///
/// An image that is not named is not approved, and a device that is not registered gets no token.
public struct ServicePolicy: Sendable, Equatable {
  /// `iss` of measurement tokens.
  public var issuer: BoundedText<64>
  /// `iss` of attestation tokens.
  public var attestationIssuer: BoundedText<64>
  /// `aud` of attestation tokens: the API domain of the backend.
  public var audience: BoundedText<255>
  /// The approved executables, with their names and versions.
  public var images: [ApprovedImage] = []
  /// Which devices get tokens.
  public var devices: DeviceAdmission = .listed
  /// Properties with which no app is approved.
  public var refusedProperties: [BoundedText<32>] = ["debugger", "injection", "agent"].compactMap { BoundedText($0) }
  /// `sub` where the attestation token of another service names no app; nil to refuse such tokens.
  public var subject: BoundedText<64>?
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
      ("images", .object(images.map(\.member))), ("devices", .string(devices.rawValue)),
      ("refused_properties", .array(refusedProperties.map { .string($0.description) })),
      ("attestation_seconds", .integer(attestationSeconds)), ("token_seconds", .integer(tokenSeconds)),
    ]
    if let subject { members.append(("subject", .string(subject.description))) }
    if let commands { members.append(("commands", .array(commands.map { .string($0.description) }))) }
    if let maximumUses { members.append(("maximum_uses", .integer(maximumUses))) }
    return .object(members)
  }
}
