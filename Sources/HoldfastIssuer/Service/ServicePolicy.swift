import HoldfastCore
import HoldfastFormats

/// The owner's rules for the attestation service and the backend: the file `policy.json`.
///
/// An image that is not named is not approved, and a device that is not registered gets no token.
package struct ServicePolicy: Sendable, Equatable {
  /// `iss` of measurement tokens.
  package var issuer: BoundedText<64>
  /// `iss` of attestation tokens.
  package var attestationIssuer: BoundedText<64>
  /// `aud` of attestation tokens: the API domain of the backend.
  package var audience: BoundedText<255>
  /// The approved executables, with their names and versions.
  package var images: [ApprovedImage] = []
  /// Which devices get tokens.
  package var devices: DeviceAdmission = .listed
  /// Properties with which no app is approved.
  package var refusedProperties: [BoundedText<32>] = ["debugger", "injection", "agent"].compactMap { BoundedText($0) }
  /// `sub` where the attestation token of another service names no app; nil to refuse such tokens.
  package var subject: BoundedText<64>?
  /// How long an attestation token is valid.
  package var attestationSeconds: UInt64 = 5 * 60
  /// How long a measurement token is valid.
  package var tokenSeconds: UInt64 = 90 * 24 * 60 * 60
  /// `cmd` of measurement tokens; nil to leave it out.
  package var commands: [BoundedText<32>]?
  /// `max` of measurement tokens; nil to leave it out.
  package var maximumUses: UInt64?

  /// The longest policy, in bytes.
  package static let maximumByteCount = 1 << 20

  package init(
    issuer: BoundedText<64> = BoundedText("issuer.example" as StaticString),
    attestationIssuer: BoundedText<64> = BoundedText("attestation.example" as StaticString),
    audience: BoundedText<255> = BoundedText("api.example" as StaticString)
  ) {
    self.issuer = issuer
    self.attestationIssuer = attestationIssuer
    self.audience = audience
  }

  /// The policy as strict JSON; what is absent stays absent.
  package var json: JSONValue {
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

/// Why a policy could not be read.
package enum ServicePolicyFault: Error, Equatable {
  /// Not strict JSON, or too long: where it is not.
  case malformed(JSONMistake)
  /// A member is unknown, missing, of another kind or out of range: which one.
  case member(JSONMistake)
  /// A member of an earlier shape, which is no longer read.
  case formerMember(String)
}

extension ServicePolicy {
  private static let memberNames = [
    "issuer", "attestation_issuer", "audience", "images", "devices", "refused_properties", "subject",
    "attestation_seconds", "token_seconds", "commands", "maximum_uses",
  ]

  /// Reads a policy; members that it does not know are refused, so that a slip of the pen permits nothing.
  ///
  /// `issuer`, `attestation_issuer`, `audience` and `images` are required; the others have their defaults.
  ///
  /// - Throws: `malformed`, `member`; `formerMember` for the list `image_digests`, which `images` has replaced.
  package init(json bytes: [UInt8]) throws(ServicePolicyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch {
      throw .malformed(
        JSONMistake(in: bytes, byteLimit: Self.maximumByteCount) ?? JSONMistake(at: [], expected: .syntax))
    }
    if value["image_digests"] != nil { throw .formerMember("image_digests") }
    do throws(JSONMistake) { self = try ServicePolicy(JSONMember(value)) } catch {
      throw .member(error.located(in: bytes))
    }
  }

  private init(_ policy: JSONMember) throws(JSONMistake) {
    try policy.checkMembers(Self.memberNames)
    self.init(
      issuer: try policy.required("issuer").boundedText(),
      attestationIssuer: try policy.required("attestation_issuer").boundedText(),
      audience: try policy.required("audience").boundedText())
    for (name, image) in try policy.required("images").members() { images.append(try ApprovedImage(name, image)) }
    if let devices = policy.member("devices") {
      guard let admission = devices.value.text.flatMap(DeviceAdmission.init) else {
        throw devices.mistake(.text(of: DeviceAdmission.allCases.map(\.rawValue)))
      }
      self.devices = admission
    }
    if let properties = policy.member("refused_properties") {
      refusedProperties = []
      for property in try properties.elements() { refusedProperties.append(try property.boundedText()) }
    }
    if let subject = policy.member("subject") { self.subject = try subject.boundedText() }
    if let seconds = policy.member("attestation_seconds") { attestationSeconds = try seconds.integer(1...3600) }
    if let seconds = policy.member("token_seconds") {
      tokenSeconds = try seconds.integer(1...(10 * 366 * 24 * 60 * 60))
    }
    if let named = policy.member("commands") {
      let elements = try named.elements()
      guard elements.count <= 16 else { throw named.mistake(.atMost(16)) }
      var commands: [BoundedText<32>] = []
      for command in elements { commands.append(try command.boundedText()) }
      self.commands = commands
    }
    if let uses = policy.member("maximum_uses") { maximumUses = try uses.integer(1...maximumInteger) }
  }
}

extension JSONMember {
  /// A text of 1 to `capacity` bytes.
  func boundedText<let capacity: Int>() throws(JSONMistake) -> BoundedText<capacity> {
    guard let bounded = BoundedText<capacity>(try text(byteCounts: 1...capacity)) else {
      throw mistake(.byteCount(1...capacity))
    }
    return bounded
  }
}
