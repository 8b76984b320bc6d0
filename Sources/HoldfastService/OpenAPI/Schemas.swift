import HoldfastCore
import HoldfastIssuer

extension Schema {
  /// A device's descriptor, as `holdfast device show --json` prints it.
  package static let deviceDescriptor = Schema.named(
    "DeviceDescriptor",
    .object([
      Property("device_id", .hexadecimal(digitCount: 32), required: true, "The id of the device."),
      Property("kid", .hexadecimal(digitCount: 16), required: true, "The id of its key."),
      Property(
        "public_key",
        .object([
          Property("kty", .choice(["EC"]), required: true, ""), Property("crv", .choice(["P-256"]), required: true, ""),
          Property("x", .coordinate, required: true, ""), Property("y", .coordinate, required: true, ""),
        ]), required: true, "The public key as a JWK (RFC 7517)."),
    ]))

  /// The version of an app, three numbers.
  static let version = Schema.array(.anyInteger, count: 3...3)

  /// The commands of a token.
  static let commands = Schema.array(.text(1...32), count: 0...16)

  /// The permissions of an operator.
  static let scopes = Schema.array(
    .choice(OperatorScope.allCases.map(\.rawValue)), count: 0...OperatorScope.allCases.count)

  /// The policy. Images are no part of it: operations approve them.
  static let policy = Schema.named(
    "Policy",
    .object([
      Property("issuer", .text(1...64), required: true, "The claim iss of measurement tokens."),
      Property("attestation_issuer", .text(1...64), required: true, "The claim iss of attestation tokens."),
      Property("audience", .text(1...255), required: true, "The claim aud of attestation tokens."),
      Property("devices", .choice(DeviceAdmission.allCases.map(\.rawValue)), "The devices that get tokens."),
      Property(
        "device_makers", .array(.base64(byteCounts: 91...91), count: 0...16),
        "The public keys of makers, SubjectPublicKeyInfo in DER: a device is registered with the signature of one."),
      Property(
        "refused_properties", .array(.text(1...32), count: 0...64), "The properties with which no app is approved."),
      Property("known_code", .flag, "Whether baselines may permit known code: true unless it says false."),
      Property("subject", .text(1...64), "The claim sub for attestation tokens that name no app."),
      Property("attestation_seconds", .integer(1...3600), "The validity of an attestation token."),
      Property("token_seconds", .integer(1...(10 * 366 * 86_400)), "The validity of a measurement token."),
      Property("commands", .commands, "The claim cmd of measurement tokens."),
      Property("maximum_uses", .integer(1...maximumInteger), "The claim max of measurement tokens."),
      Property("secure_strings", .flag, "Whether attested apps get the secure strings."),
      Property("custom_tokens", .flag, "Whether attested apps get tokens with claims of their choice."),
      Property("message_signing", .flag, "Whether attested apps get the key for messages."),
      Property(
        "offline_seconds", .integer(1...(10 * 366 * 86_400)), "The time for which a prover may be offline."),
      Property("settings", .settings, "Settings for the app."),
      Property(
        "compliance",
        .array(
          .object([
            Property(
              "subject", .choice(ComplianceRule.Subject.allCases.map(\.rawValue)), required: true, "What must comply."),
            Property("os", .text(1...32), "The only operating system to which the rule applies."),
            Property(
              "operator", .choice(ComplianceRule.Comparison.allCases.map(\.rawValue)), required: true,
              "The comparison with the versions."),
            Property(
              "versions", .array(.text(1...32), count: 1...ComplianceRule.maximumVersionCount), required: true,
              "The versions that comply."),
            Property(
              "action", .choice(ComplianceRule.Action.allCases.map(\.rawValue)), required: true,
              "What happens with the others."),
          ]), count: 0...ComplianceRule.maximumCount), "Rules about versions."),
      Property("decoy_tokens", .flag, "Whether a refused app gets a token that no backend accepts."),
      Property(
        "settings_for",
        .array(
          .object(scope + [Property("settings", .settings, required: true, "The settings.")]),
          count: 0...ScopedSettings.maximumCount),
        "Settings of some tokens, in place of the others: those for a device, else those of a version, else those of an app."
      ),
    ]))

  /// The tokens that settings are for: app, device or both.
  static let scope = [
    Property("app", .text(1...64), "The only app, as its image was approved."),
    Property("version", .version, "The only version of the app."),
    Property("device", .hexadecimal(digitCount: 32), "The only device."),
  ]

  /// Settings for the app.
  static let settings = Schema.object([
    Property("type", .choice(AppSettings.Kind.allCases.map(\.rawValue)), required: true, "Their kind."),
    // Whole groups of three bytes, so that the longest text of the schema is not too long.
    Property("value", .base64(byteLimit: AppSettings.maximumByteCount / 3 * 3), required: true, "Their bytes."),
  ])

  /// A DNS name in lower case, which is checked later.
  static let domainName = Schema.text(1...253)

  /// The pin of a public key, which is checked later.
  static let pin = Schema.text(52...52)

  /// A digest of 32 bytes in base64 with padding.
  static let digest = Schema.base64(byteCounts: 32...32)

  /// Issued tokens and refusals by day.
  static let statistics = Schema.object([
    Property(
      "days",
      .array(
        .object([
          Property("day", .time, required: true, "The beginning of the day, in UTC."),
          Property("issued", .anyInteger, required: true, "The number of tokens."),
          Property("refused", .map(.anyInteger), required: true, "The number of refusals by reason."),
        ]), count: 0...367), required: true, "The days, the earliest first.")
  ])

  /// The public claims of a measurement token: those of ``IssuanceReport``.
  static let claims = Schema.object([
    Property("issuer", .text(1...64), required: true, "The claim iss."),
    Property("subject", .text(1...64), required: true, "The app: the claim sub."),
    Property("version", .version, required: true, "The version of the app: the claim ver."),
    Property("generation", .anyInteger, required: true, "The claim gen."),
    Property("issued", .time, required: true, "The claim iat."),
    Property("expires", .time, required: true, "The claim exp."),
    Property("maximum_uses", .nullable(.anyInteger), required: true, "The claim max."),
    Property("commands", .nullable(.commands), required: true, "The claim cmd."),
    Property("user", .nullable(.text(1...32)), required: true, "The claim usr."),
  ])

  /// The answer to every request that fails (RFC 9457 §3).
  static let problem = Schema.named(
    "Problem",
    .object([
      Property("type", .text(1...128), required: true, "A URN that names the kind of problem."),
      Property("title", .text(1...255), required: true, "The kind of problem for people."),
      Property("status", .integer(400...599), required: true, "The status of the response."),
      Property("detail", .nullable(.text(0...4096)), required: true, "What is wrong with this request."),
      Property(
        "reasons", .array(.text(1...64), count: 0...64), required: true,
        "All reasons of a refusal, or the state that does not permit a change."),
      Property("arc", .nullable(.text(1...16)), required: true, "The attestation response code."),
      Property("request_id", .text(1...64), required: true, "The id of the request in the log."),
      Property("help", .text(1...255), "Whom to ask for help, in a refusal, where the operator says so."),
    ]))
}

extension Schema {
  /// Returns the form of a page of records.
  static func page(of record: Schema) -> Schema {
    .object([
      Property("items", .array(record, count: 0...Int(Fleet.pageLimit)), required: true, "The records."),
      Property(
        "next", .nullable(.text(1...128)), required: true, "The parameter after for the next page; null at the end."),
    ])
  }
}

extension Listing {
  /// The form of a record.
  var schema: Schema {
    .named(
      component,
      .object(columns.map { Schema.Property($0.name, $0.kind.schema, required: true, "") }))
  }

  /// The form of a record with more members, which are shown only once.
  func schema(with properties: [Schema.Property]) -> Schema {
    .object(columns.map { Schema.Property($0.name, $0.kind.schema, required: true, "") } + properties)
  }

  /// The form of a page.
  var pageSchema: Schema { .page(of: schema) }

  private var component: String { (name.prefix(1).uppercased() + name.dropFirst()).dropLast().description }
}

extension Listing.Kind {
  fileprivate var schema: Schema {
    switch self {
    case .id(let byteCount): .hexadecimal(digitCount: 2 * byteCount)
    case .text: .text(0...4096)
    case .number: .anyInteger
    case .time: .time
    case .words: .array(.text(1...64), count: 0...64)
    case .commands: .commands
    case .details: .map(.text(0...4096))
    case .texts: .array(.text(1...4096), count: 0...16)
    case .flag: .flag
    case .optional(let kind): .nullable(kind.schema)
    }
  }
}
