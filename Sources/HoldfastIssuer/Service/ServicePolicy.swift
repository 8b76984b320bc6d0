import HoldfastCore
import HoldfastFormats

/// The owner's rules for the attestation service and the backend: the file `policy.json`.
///
/// An image that it does not name is not approved. By default, a device that is not registered gets no token.
package struct ServicePolicy: Sendable, Equatable {
  /// The claim `iss` of measurement tokens.
  package var issuer: BoundedText<64>
  /// The claim `iss` of attestation tokens.
  package var attestationIssuer: BoundedText<64>
  /// The claim `aud` of attestation tokens: the API domain of the backend.
  package var audience: BoundedText<255>
  /// The approved executables, with their names and versions.
  package var images: [ApprovedImage] = []
  /// The devices for which tokens are issued.
  package var devices: DeviceAdmission = .listed
  /// The public keys of the makers of devices. If there are any, a device is registered only with the signature of one over its
  /// descriptor.
  package var deviceMakers: [P256Point] = []
  /// The properties with which no app is approved.
  package var refusedProperties: [BoundedText<32>] = ["debugger", "injection", "agent"].compactMap { BoundedText($0) }
  /// The ways of measuring that baselines may permit.
  package var measurementPolicy = defaultMeasurementPolicy
  /// The claim `sub` for attestation tokens of another service that name no app; nil to refuse such tokens.
  package var subject: BoundedText<64>?
  /// The validity of an attestation token, in seconds.
  package var attestationSeconds: UInt64 = 5 * 60
  /// The validity of a measurement token, in seconds.
  package var tokenSeconds: UInt64 = 90 * 24 * 60 * 60
  /// The claim `cmd` of measurement tokens; nil to omit it.
  package var commands: [BoundedText<32>]?
  /// The claim `max` of measurement tokens; nil to omit it.
  package var maximumUses: UInt64?
  /// The features that the online service offers to attested apps.
  package var features = AppFeatures()
  /// The conditions for provers.
  package var conditions = Conditions()
  /// The settings of one app or for one device, at most 32.
  package var scopedSettings: [ScopedSettings] = []
  /// Whether an app that is refused gets a token that no backend accepts, in place of the reasons.
  package var givesDecoys = false

  /// The largest policy, in bytes.
  package static let maximumByteCount = 1 << 20

  /// Creates a policy without images, with the defaults of the other members.
  package init(
    issuer: BoundedText<64> = BoundedText("issuer.example" as StaticString),
    attestationIssuer: BoundedText<64> = BoundedText("attestation.example" as StaticString),
    audience: BoundedText<255> = BoundedText("api.example" as StaticString)
  ) {
    self.issuer = issuer
    self.attestationIssuer = attestationIssuer
    self.audience = audience
  }

  /// The optional claims of measurement tokens that the policy names.
  var claims: [Claim: ClaimValue] {
    var claims: [Claim: ClaimValue] = [:]
    claims[.commands] = commands.map { .texts($0.map { $0.description }) }
    claims[.maximumUses] = maximumUses.map { .number($0) }
    return claims
  }

  /// The policy as strict JSON. Members that are nil are omitted.
  package var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("issuer", .string(issuer.description)), ("attestation_issuer", .string(attestationIssuer.description)),
      ("audience", .string(audience.description)),
      ("images", .object(images.map(\.member))), ("devices", .string(devices.rawValue)),
      ("refused_properties", .array(refusedProperties.map { .string($0.description) })),
      ("attestation_seconds", .integer(attestationSeconds)), ("token_seconds", .integer(tokenSeconds)),
    ]
    if !deviceMakers.isEmpty {
      members.append(("device_makers", .array(deviceMakers.map { .string(SubjectPublicKeyInfo.base64(of: $0)) })))
    }
    if !measurementPolicy.contains(.knownCode) { members.append(("known_code", .bool(false))) }
    if let subject { members.append(("subject", .string(subject.description))) }
    if let commands { members.append(("commands", .array(commands.map { .string($0.description) }))) }
    if let maximumUses { members.append(("maximum_uses", .integer(maximumUses))) }
    members += features.members.filter { $0.1.flag == true } + conditions.members
    if givesDecoys { members.append(("decoy_tokens", .bool(true))) }
    if !scopedSettings.isEmpty { members.append((ScopedSettings.memberName, .array(scopedSettings.map(\.json)))) }
    return .object(members)
  }
}

/// The reasons why a policy could not be read.
package enum ServicePolicyFault: Error, Equatable {
  /// The file is too long or not strict JSON; the value states the position.
  case malformed(JSONMistake)
  /// The value's member is unknown, missing, of another type or out of range.
  case member(JSONMistake)
  /// The member belongs to an earlier format, which is no longer read.
  case formerMember(String)
}

extension ServicePolicy {
  private static let memberNames =
    [
      "issuer", "attestation_issuer", "audience", "images", "devices", "device_makers", "refused_properties",
      "known_code", "subject",
      "attestation_seconds", "token_seconds", "commands", "maximum_uses",
    ] + AppFeatures().members.map(\.0) + Conditions.memberNames + ["decoy_tokens", ScopedSettings.memberName]

  /// Reads a policy. Unknown members are refused, so that a typing error cannot permit anything.
  ///
  /// `issuer`, `attestation_issuer`, `audience` and `images` are required; the others have defaults.
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
    if let makers = policy.member("device_makers") {
      deviceMakers = try makers.publicKeys(atMost: 16)
      guard deviceMakers.isEmpty || devices == .listed else {
        throw makers.mistake(.form("absent from a policy with devices \"first-come\", which are not registered"))
      }
    }
    if let properties = policy.member("refused_properties") {
      refusedProperties = []
      for property in try properties.elements() { refusedProperties.append(try property.boundedText()) }
    }
    if try policy.member("known_code")?.flag() == false { measurementPolicy.remove(.knownCode) }
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
    conditions = try Conditions(policy)
    scopedSettings = try Self.scopedSettings(policy)
    givesDecoys = try policy.member("decoy_tokens")?.flag() ?? false
    features.secureStrings = try policy.member("secure_strings")?.flag() ?? false
    features.customTokens = try policy.member("custom_tokens")?.flag() ?? false
    features.messageSigning = try policy.member("message_signing")?.flag() ?? false
  }
}

/// The features that the online service offers to attested apps in addition to tokens. All are off unless the policy says otherwise.
package struct AppFeatures: Sendable, Equatable {
  /// The texts that operators set for apps.
  package var secureStrings = false
  /// Tokens with claims that the app chooses.
  package var customTokens = false
  /// The key with which apps sign messages to backends.
  package var messageSigning = false

  /// Creates features that are all off.
  package init() {}

  /// The members of the policy and of the configuration for apps.
  package var members: [(String, JSONValue)] {
    [
      ("secure_strings", .bool(secureStrings)), ("custom_tokens", .bool(customTokens)),
      ("message_signing", .bool(messageSigning)),
    ]
  }
}

extension JSONMember {
  /// Reads public keys of P-256, each the base64 of a SubjectPublicKeyInfo in DER.
  func publicKeys(atMost count: Int) throws(JSONMistake) -> [P256Point] {
    let elements = try elements()
    guard elements.count <= count else { throw mistake(.atMost(count)) }
    var points: [P256Point] = []
    for element in elements {
      guard let point = SubjectPublicKeyInfo.point(base64: try element.text(byteCounts: 124...124)) else {
        throw element.mistake(.form("the base64 of a public key of P-256 in DER"))
      }
      points.append(point)
    }
    return points
  }

  /// Reads a text of 1 to `capacity` bytes.
  func boundedText<let capacity: Int>() throws(JSONMistake) -> BoundedText<capacity> {
    guard let bounded = BoundedText<capacity>(try text(byteCounts: 1...capacity)) else {
      throw mistake(.byteCount(1...capacity))
    }
    return bounded
  }
}
