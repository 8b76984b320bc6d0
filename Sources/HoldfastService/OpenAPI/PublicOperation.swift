import HoldfastFormats

/// One operation for provers, devices' owners and probes, or one whose answer is not JSON: the row from which `openapi.yaml` is
/// made, and with which its route checks bodies.
package struct PublicOperation: Sendable {
  /// An answer other than a problem document.
  struct Answer: Sendable {
    let status: UInt64
    let summary: String
    /// The form of the JSON; nil for another media type.
    let schema: Schema?
    /// The media type of an answer that is not JSON.
    var type = "text/plain"
    var headers: [Schema.Property] = []
  }

  /// The identifier, such as `attest`.
  let name: String
  package let method: AdministrationOperation.Method
  package let path: String
  let summary: String
  /// The members of the request's body; nil if it has none.
  package let body: [Schema.Property]?
  let answers: [Answer]
  /// The statuses of problem documents beyond those of every operation.
  let problems: [UInt64]
  /// The scope that the operator's token needs; nil for an operation without a token.
  package var scope: OperatorScope? = nil
  /// The parameters of the query.
  var query: [Schema.Property] = []

  /// Checks the form of a body.
  package func check(_ body: JSONValue) throws(JSONMistake) { try Schema.check(JSONMember(body), self.body ?? []) }

  /// Reads the parameters of a query, whose form it checks.
  package func parameters(_ query: [(String, String)]) throws(JSONMistake) -> JSONMember {
    try Schema.parameters(query, self.query)
  }
}

extension PublicOperation {
  /// The largest evidence, in bytes.
  private static let evidenceLimit = 65_536

  private static let retryAfter = Schema.Property(
    "Retry-After", .integer(0...3600), "The seconds after which to ask again.")

  package static let attest = PublicOperation(
    name: "attest", method: .post, path: "/v1/attest",
    summary: "Appraises evidence of an app, and issues an attestation token for one device.",
    body: [
      Schema.Property("evidence", .base64(byteLimit: evidenceLimit), required: true, "What measure --out writes."),
      Schema.Property("device", .deviceDescriptor, required: true, "The device."),
      Schema.Property("domain", .domainName, "A domain with measurement, whose audience the token gets."),
      hash, development,
    ],
    answers: [
      Answer(
        status: 200, summary: "The app is approved.",
        schema: .object([
          Schema.Property("attestation", .text(1...16_384), required: true, "The attestation token."),
          Schema.Property("arc", .text(1...16), required: true, "The attestation response code."),
          Schema.Property("expires", .time, required: true, "The end of its validity."),
        ]))
    ], problems: [403, 404, 409])

  private static let hash = Schema.Property(
    "hash", .digest, "SHA-256 of the app's data, to which the attestation token is bound.")

  private static let development = Schema.Property(
    "development", .digest, "The code that proves the knowledge of the development key.")

  package static let fetch = PublicOperation(
    name: "fetch", method: .post, path: "/v1/fetch",
    summary: "Appraises evidence of an app, and gives it what its attestation permits.",
    body: [
      Schema.Property("evidence", .base64(byteLimit: evidenceLimit), required: true, "What measure --out writes."),
      Schema.Property("domain", .domainName, "The API domain for which the app wants a token."),
      Schema.Property("hash", .digest, "SHA-256 of the app's data, the claim pay of the token."),
      Schema.Property(
        "payload", .openObject(without: CustomPayload.reservedClaims),
        "The claims of a custom token, at most 4096 bytes and 14 levels."
      ),
      Schema.Property("strings", .flag, "Whether the app wants the secure strings."),
      development,
    ],
    answers: [
      Answer(
        status: 200, summary: "The app is approved.",
        schema: .object([
          Schema.Property("token", .nullable(.text(1...16_384)), required: true, "The token for the domain."),
          Schema.Property("expires", .nullable(.time), required: true, "The end of its validity."),
          Schema.Property("custom", .nullable(.text(1...16_384)), required: true, "The custom token."),
          Schema.Property("strings", .nullable(.map(.anyText(1...4096))), required: true, "The secure strings."),
          Schema.Property("message_key", .nullable(.digest), required: true, "The key for messages, 32 bytes."),
          Schema.Property("arc", .text(1...16), required: true, "The attestation response code."),
          Schema.Property("did", .base64(byteCounts: 16...16), required: true, "The id of the app's host."),
          Schema.Property("configuration", .anyInteger, required: true, "The revision of the newest configuration."),
          Schema.Property(
            "force_pins", .anyInteger, required: true, "The revision of the configuration from which pins are forced."),
        ]))
    ], problems: [403, 404, 409])

  package static let configuration = PublicOperation(
    name: "configuration", method: .get, path: "/v1/configuration",
    summary: "Returns the signed configuration for apps: domains, pins and features.", body: nil,
    answers: [Answer(status: 200, summary: "A compact JWS.", schema: nil, type: "application/jwt")], problems: [])

  package static let appTokenKeys = PublicOperation(
    name: "appTokenKeys", method: .get, path: "/.well-known/app-tokens.json",
    summary: "Lists the public keys of app tokens, custom tokens and the configuration, as a JWK Set (RFC 7517 §5).",
    body: nil, answers: [Answer(status: 200, summary: "The keys.", schema: .appKeySet)], problems: [])

  private static let ownToken = [
    Schema.Property("evidence", .base64(byteLimit: evidenceLimit), required: true, "Fresh evidence of the app."),
    Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The id of the device."),
    Schema.Property("token", .hexadecimal(digitCount: 64), required: true, "SHA-256 of the measurement token."),
  ]

  private static let standing: [Schema.Property] = [
    Schema.Property("token", .hexadecimal(digitCount: 64), required: true, "SHA-256 of the measurement token."),
    Schema.Property("status", .choice(TokenStanding.Status.allCases.map(\.rawValue)), required: true, "Its state."),
    Schema.Property("expires", .time, required: true, "The end of its validity."),
  ]

  package static let enrolment = PublicOperation(
    name: "enrolment", method: .post, path: "/v1/enrolment",
    summary: "Shows a prover the state of its measurement token, with the terms of the present policy.", body: ownToken,
    answers: [
      Answer(
        status: 200, summary: "The state of the token.",
        schema: .object(
          standing + [
            Schema.Property("terms", .text(1...50_000), "The terms of a valid token, where the policy has conditions.")
          ]))
    ], problems: [403])

  package static let leave = PublicOperation(
    name: "leave", method: .post, path: "/v1/leave",
    summary: "Records that a prover removed its enrolment: its measurement token is revoked.", body: ownToken,
    answers: [Answer(status: 200, summary: "The state of the token.", schema: .object(standing))], problems: [403])

  package static let postureRules = PublicOperation(
    name: "postureRules", method: .get, path: "/v1/posture-rules",
    summary: "Returns the newest rules about the posture of provers, signed by the issuer.", body: nil,
    answers: [Answer(status: 200, summary: "A compact JWS.", schema: nil, type: "application/jwt")], problems: [404])

  package static let bulletins = PublicOperation(
    name: "bulletins", method: .get, path: "/v1/bulletins",
    summary: "Returns the bulletins that a prover carries to a device, the oldest first.", body: nil,
    answers: [
      Answer(
        status: 200, summary: "The bulletins for the device and its groups; none if the device is not registered.",
        schema: .object([
          Schema.Property("bulletins", .array(.object(bulletin), count: 0...16), required: true, "At most 16 KiB.")
        ]))
    ], problems: [],
    query: [
      Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
      Schema.Property(
        "have", .anyInteger, "The number above which bulletins are wanted, the least that the device has; 0 if missing."
      ),
    ])

  package static let audit = PublicOperation(
    name: "audit", method: .post, path: "/v1/audit",
    summary: "Takes pages of a device's audit log that a prover carried, in any order, and gives the receipt.",
    body: [
      Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
      Schema.Property(
        "pages", .array(.base64(byteCounts: 1...4096), count: 1...Fleet.auditPageLimit), required: true,
        "The sealed pages, as the device gave them."),
    ],
    answers: [
      Answer(
        status: 200,
        summary: "The state of the log; two nulls if no page is one of the device, or if it is not registered.",
        schema: .object([
          Schema.Property(
            "receipt", .nullable(.base64(byteCounts: 1...256)), required: true,
            "The receipt for the device; null after a fork, and while the entries are not on a standby."),
          Schema.Property(
            "missing", .nullable(.anyInteger), required: true, "The number of the first entry that the service lacks."),
        ]))
    ], problems: [])

  private static let bulletin = [
    Schema.Property("audience", .hexadecimal(digitCount: 32), required: true, "The device or the group."),
    Schema.Property("number", .anyInteger, required: true, "Its number."),
    Schema.Property("predecessor", .anyInteger, required: true, "The number of the bulletin before it, or 0."),
    Schema.Property("bulletin", .base64(byteCounts: 1...3072), required: true, "The bulletin."),
  ]

  package static let token = PublicOperation(
    name: "token", method: .post, path: "/v1/tokens",
    summary: "Exchanges an attestation token for a measurement token.",
    body: [
      Schema.Property("attestation", .text(1...16_384), required: true, "The attestation token."),
      Schema.Property("device", .deviceDescriptor, required: true, "The device for which it was issued."),
      Schema.Property("hash", .digest, "The hash with which it was issued."),
      Schema.Property("invitation", .invitationCode, "The code of an invitation."),
      Schema.Property("format", .choice(["cose", "jose", "jose-a256kw"]), "The format of the measurement token."),
      Schema.Property("user", .text(1...32), "The wished user, where an operator decides."),
      Schema.Property("commands", .commands, "The wished commands, where an operator decides."),
    ],
    answers: [
      Answer(
        status: 201, summary: "The measurement token.",
        schema: .object([
          Schema.Property("token", .base64(byteLimit: 8192), required: true, "The measurement token."),
          Schema.Property("format", .choice(["cose", "jose", "jose-a256kw"]), required: true, "Its format."),
          Schema.Property("claims", .claims, required: true, "Its public claims."),
          Schema.Property("terms", .text(1...50_000), "The terms, a JWS, where the policy has conditions."),
        ])),
      Answer(
        status: 202, summary: "An operator has not decided.", schema: .requestState,
        headers: [Schema.Property("Location", .text(1...128), "The path of the request."), retryAfter]),
    ], problems: [403, 409])

  package static let requestState = PublicOperation(
    name: "requestState", method: .get, path: "/v1/requests/{id}",
    summary: "Shows whether an operator has decided about a request.", body: nil,
    answers: [Answer(status: 200, summary: "The state of the request.", schema: .requestState, headers: [retryAfter])],
    problems: [404])

  package static let keys = PublicOperation(
    name: "keys", method: .get, path: "/.well-known/jwks.json",
    summary: "Lists the public keys of the issuer, as a JWK Set (RFC 7517 §5).", body: nil,
    answers: [Answer(status: 200, summary: "The keys.", schema: .keySet)], problems: [])

  package static let health = PublicOperation(
    name: "health", method: .get, path: "/healthz", summary: "Answers while the process runs.", body: nil,
    answers: [Answer(status: 200, summary: "The process runs.", schema: .state("ok"))], problems: [])

  package static let readiness = PublicOperation(
    name: "readiness", method: .get, path: "/readyz", summary: "Answers whether the database answers.", body: nil,
    answers: [Answer(status: 200, summary: "The database answers.", schema: .state("ready"))], problems: [])

  package static let metrics = PublicOperation(
    name: "metrics", method: .get, path: "/metrics", summary: "Counters and durations, as Prometheus reads them.",
    body: nil, answers: [Answer(status: 200, summary: "The metrics as text.", schema: nil)], problems: [])

  package static let export = PublicOperation(
    name: "export", method: .get, path: "/v1/admin/export",
    summary: "Returns a backup of everything that the service remembers, encrypted with its key.", body: nil,
    answers: [Answer(status: 200, summary: "The backup.", schema: nil, type: "application/octet-stream")], problems: [],
    scope: .admin)

  /// All operations.
  package static let all = [
    attest, token, requestState, enrolment, leave, postureRules, bulletins, audit, fetch, configuration, keys,
    appTokenKeys,
    health,
    readiness, metrics, export,
  ]
}

extension Schema {
  fileprivate static func state(_ text: String) -> Schema {
    .object([Property("status", .choice([text]), required: true, "")])
  }

  fileprivate static let requestState = Schema.object([
    Property("request", .hexadecimal(digitCount: 32), required: true, "The id of the request."),
    Property("status", .choice(RequestStatus.allCases.map(\.rawValue)), required: true, "Its state."),
    Property("reason", .text(1...255), "The operator's reason for a refusal."),
  ])

  private static let publicKey = [
    Property("kty", .choice(["EC"]), required: true, ""), Property("crv", .choice(["P-256"]), required: true, ""),
    Property("x", .coordinate, required: true, ""), Property("y", .coordinate, required: true, ""),
    Property("kid", .text(11...11), required: true, "The id of the key, 8 bytes as base64url."),
    Property("use", .choice(["sig"]), required: true, ""), Property("alg", .choice(["ES256"]), required: true, ""),
  ]

  fileprivate static let keySet = Schema.object([
    Property(
      "keys",
      .array(
        .object(
          publicKey + [Property("active", .time, required: true, "The time from which the key signs.")]),
        count: 0...1000), required: true, "The keys, in the order in which they sign."),
    Property(
      "agreement",
      .object([
        Property("kty", .choice(["EC"]), required: true, ""), Property("crv", .choice(["P-256"]), required: true, ""),
        Property("x", .coordinate, required: true, ""), Property("y", .coordinate, required: true, ""),
      ]), required: true, "The key with which devices seal pages of their audit logs."),
  ])

  fileprivate static let appKeySet = Schema.object([
    Property(
      "keys",
      .array(
        .object(
          publicKey + [
            Property("active", .time, required: true, "The time from which the key signs tokens."),
            Property("configuration", .flag, required: true, "Whether the key signs the configuration."),
          ]), count: 1...1000), required: true, "The keys, in the order in which they sign.")
  ])
}
