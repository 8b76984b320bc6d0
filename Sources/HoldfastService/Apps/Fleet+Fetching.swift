import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastStorage

/// The wishes that an app sends with its evidence.
package struct FetchWishes: Sendable {
  /// The API domain for which the app wants a token; nil for none.
  package var domain: String?
  /// The digest of the app's data, the claim `pay`, 32 bytes.
  package var hash: Digest?
  /// The claims of a custom token; nil for none.
  package var payload: JSONValue?
  /// Whether the app wants the secure strings.
  package var strings = false
  /// The code that proves the knowledge of the development key, 32 bytes.
  package var development: Digest?

  /// Creates wishes for nothing but the response code.
  package init() {}

  /// Returns whether a value can be the payload of a custom token.
  package static func canSign(_ payload: JSONValue) -> Bool { CustomPayload.canSign(payload) }
}

/// The service's answer to an app.
package enum FetchAnswer: Sendable, Equatable {
  /// The app is approved; the value is the body of the answer. It may contain secrets.
  case fetched(JSONValue)
  /// The app is not approved.
  case refused(Refusal)
  /// The app is approved, and asked for what there is not. The value is its response code.
  case unavailable(DomainRefusal, BoundedText<16>)
}

extension Fleet {
  /// The lifetime of a custom token, in seconds.
  private static let customSeconds: UInt64 = 300

  /// Appraises evidence, and gives the app what its attestation permits: a token for an API domain, a custom token, the secure
  /// strings, and the key for messages.
  ///
  /// The baseline is of no device. The same evidence may be presented for five minutes, and never for a measurement token.
  ///
  /// - Parameters:
  ///   - evidence: The evidence, at most 65,536 bytes. It is not stored.
  ///   - wishes: What the app asks for. Its payload must be one that can be signed.
  package func fetch(_ evidence: [UInt8], wishes: FetchWishes) throws(FleetFault) -> FetchAnswer {
    let presented: PresentedEvidence
    do throws(AppraisalError) {
      presented = try PresentedEvidence(evidence, by: nil, development: wishes.development)
    } catch {
      if case .cryptography = error { throw .cryptography }
      return .refused(.notEvidence)
    }
    return try transaction { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      switch try self.appraise(presented, with: keys, in: session) {
      case .refused(let refusal, let hostID):
        guard let code = refusal.code, let hostID,
          let decoy = try self.decoy(wishes, code, hostID, of: presented, with: keys, in: session)
        else { return .refused(refusal) }
        return .fetched(decoy)
      case .approved(let app):
        if let refusal = Self.refusal(of: wishes, with: keys) {
          try session.count(refusal)
          return .unavailable(refusal, app.code)
        }
        try session.count("fetched")
        return .fetched(try self.answer(wishes, to: app, with: keys, in: session))
      }
    }
  }

  private static func refusal(of wishes: FetchWishes, with keys: FleetKeys) -> DomainRefusal? {
    if let name = wishes.domain {
      guard let domain = keys.apps.domains[name] else { return .unknownDomain }
      guard domain.isProtected else { return .unprotectedDomain }
    }
    let features = keys.policy.features
    let isOff = wishes.strings && !features.secureStrings || wishes.payload != nil && !features.customTokens
    return isOff ? .disabledFeature : nil
  }

  private func answer(
    _ wishes: FetchWishes, to app: borrowing ApprovedApp, with keys: FleetKeys, in session: FleetSession
  ) throws(FleetFault) -> JSONValue {
    var token: (text: String, expires: UInt64)?
    if let domain = wishes.domain.flatMap({ keys.apps.domains[$0] }) {
      token = try Self.token(for: domain, hash: wishes.hash, to: app, with: keys, now: session.now)
    }
    var custom: String?
    if let payload = wishes.payload {
      custom = try Self.customToken(payload, to: app, with: keys, now: session.now)
    }
    var strings = JSONValue.null
    if wishes.strings { strings = try secureStrings(in: session) }
    var messageKey: String?
    if keys.policy.features.messageSigning { messageKey = try keys.messageKey().withBytes { paddedBase64($0) } }
    return Self.body(
      token: token, custom: custom, strings: strings, messageKey: messageKey, app.code, app.hostID, keys.apps)
  }

  /// The body of every answer.
  static func body(
    token: (text: String, expires: UInt64)?, custom: String? = nil, strings: JSONValue = .null, messageKey: String?,
    _ code: BoundedText<16>, _ hostID: HostID, _ apps: AttestedAppSettings
  ) -> JSONValue {
    .object([
      ("token", token.map { .string($0.text) } ?? .null), ("expires", token.map { .integer($0.expires) } ?? .null),
      ("custom", custom.map { .string($0) } ?? .null), ("strings", strings),
      ("message_key", messageKey.map { .string($0) } ?? .null), ("arc", .string(code.description)),
      ("did", .string(paddedBase64(hostID.bytes))), ("configuration", .integer(apps.revision)),
      ("force_pins", .integer(apps.forcedPins)),
    ])
  }

  /// Signs a token for a domain.
  private static func token(
    for domain: APIDomain, hash: Digest?, to app: borrowing ApprovedApp, with keys: FleetKeys, now: UInt64
  ) throws(FleetFault) -> (String, UInt64) {
    let claims = AppTokenClaims(
      hostID: app.hostID, code: app.code, subject: app.approval.subject, version: app.approval.version, hash: hash,
      isDevelopment: app.isDevelopment
    ).json(for: domain, from: keys.policy, now: now)
    switch domain.algorithm {
    case .es256:
      return (try CompactToken.signed(claims, as: .app, by: try keys.appKey(at: now).key), now + domain.lifetime)
    case .hs256:
      let epoch = keys.apps.domainEpoch(domain.name)
      return (
        try CompactToken.signed(
          claims, as: .app, sharedKey: try keys.domainKey(domain.name, epoch: epoch), epoch: epoch),
        now + domain.lifetime
      )
    }
  }

  /// Signs the claims that an app chose, with those that the service sets.
  private static func customToken(
    _ payload: JSONValue, to app: borrowing ApprovedApp, with keys: FleetKeys, now: UInt64
  ) throws(FleetFault) -> String {
    var claims: [(String, JSONValue)] = [
      ("iss", .string(keys.policy.attestationIssuer.description)), ("iat", .integer(now)),
      ("exp", .integer(now + customSeconds)), ("did", .string(paddedBase64(app.hostID.bytes))),
      ("arc", .string(app.code.description)),
    ]
    if app.isDevelopment { claims.append(("dev", .bool(true))) }
    // The names of the payload are others, so no claim can be set twice.
    let chosen = (payload.members ?? []).filter { name, _ in !CustomPayload.reservedClaims.contains(name) }
    return try CompactToken.signed(.object(chosen + claims), as: .custom, by: try keys.appKey(at: now).key)
  }
}

extension Fleet {
  /// Returns the configuration for apps, signed: domains, pins and features.
  ///
  /// - Parameter services: The addresses of the service; empty to let apps keep those that they have.
  package func configuration(services: [String]) throws(FleetFault) -> String {
    try read { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      let domains = keys.apps.domains.values.sorted { $0.name < $1.name }.map { domain in
        (
          domain.name,
          JSONValue.object([
            ("protected", .bool(domain.isProtected)), ("measurement", .bool(domain.hasMeasurement)),
          ])
        )
      }
      let pins = keys.apps.pins.map { ($0.domain, JSONValue.array($0.pins.map { .string($0) })) }
      let claims: [(String, JSONValue)] = [
        ("iss", .string(keys.policy.attestationIssuer.description)), ("iat", .integer(session.now)),
        ("revision", .integer(keys.apps.revision)), ("services", .array(services.map { .string($0) })),
        ("domains", .object(domains)), ("pins", .object(pins)), ("force_pins", .integer(keys.apps.forcedPins)),
        ("features", .object(keys.policy.features.members)),
      ]
      return try CompactToken.signed(.object(claims), as: .configuration, by: keys.configurationKey)
    }
  }

  /// The public key of the configuration for apps, with its id. It also signed tokens until the first rotation.
  package func configurationKey() throws(FleetFault) -> (id: KeyID, point: P256Point) {
    try read { (session) throws(FleetFault) in
      let point = try self.keys(in: session).configurationKey.publicPoint
      var cryptography = OpenSSLCryptography()
      do throws(CryptographyFailure) { return (try keyID(of: point, using: &cryptography), point) } catch {
        throw .cryptography
      }
    }
  }
}
