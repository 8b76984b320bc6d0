import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The facts about an app in its token for a domain.
struct AppTokenClaims {
  let hostID: HostID
  let code: BoundedText<16>
  let subject: BoundedText<64>
  let version: AppVersion
  /// The digest of the app's data, the claim `pay`.
  let hash: Digest?
  let isDevelopment: Bool

  /// The claims of a token for a domain.
  func json(for domain: APIDomain, from policy: ServicePolicy, now: UInt64) -> JSONValue {
    var claims: [(String, JSONValue)] = [
      ("iss", .string(policy.attestationIssuer.description)), ("iat", .integer(now)),
      ("exp", .integer(now + domain.lifetime)), ("aud", .string(domain.audience.description)),
      ("did", .string(paddedBase64(hostID.bytes))), ("arc", .string(code.description)),
      ("sub", .string(subject.description)),
      ("ver", .array([version.major, version.minor, version.patch].map { .integer($0) })),
    ]
    if let hash { claims.append(("pay", .string(paddedBase64(hash.bytes)))) }
    if isDevelopment { claims.append(("dev", .bool(true))) }
    return .object(claims)
  }
}

extension Fleet {
  /// Returns the answer to an app that is refused, if the policy hides refusals: it looks like the one to an approved app, but its
  /// token has a signature that no backend accepts, and so has what it signs with its key for messages.
  ///
  /// The backend and the operators see the refusal, by the response code. The app learns of it from the backend only. Anyone who
  /// checks an ES256 token with the public key sees it too.
  ///
  /// - Returns: The body; nil if the policy hides nothing, or the app asked for more than a token for a domain.
  func decoy(
    _ wishes: FetchWishes, _ code: BoundedText<16>, _ hostID: HostID, of presented: PresentedEvidence,
    with keys: FleetKeys, in session: FleetSession
  ) throws(FleetFault) -> JSONValue? {
    guard keys.policy.givesDecoys, wishes.payload == nil, !wishes.strings,
      let domain = wishes.domain.flatMap({ keys.apps.domains[$0] }), domain.isProtected
    else { return nil }
    let (subject, version) = try session.likelyApp(presented.submitted.image)
    let isDevelopment = wishes.development != nil
    let claims = AppTokenClaims(
      hostID: hostID, code: code, subject: isDevelopment ? ApprovedImage.developmentSubject : subject,
      version: isDevelopment ? .zero : version, hash: wishes.hash, isDevelopment: isDevelopment
    ).json(for: domain, from: keys.policy, now: session.now)
    try session.count("decoys")
    var messageKey: String?
    if keys.policy.features.messageSigning {
      messageKey = try keys.decoyKey(epoch: keys.apps.messageEpoch).withBytes { paddedBase64($0) }
    }
    return Self.body(
      token: (try Self.decoyToken(claims, for: domain, with: keys, now: session.now), session.now + domain.lifetime),
      messageKey: messageKey, code, hostID, keys.apps)
  }

  /// Signs claims with a key that no backend has, under the header of the key that backends know.
  private static func decoyToken(
    _ claims: JSONValue, for domain: APIDomain, with keys: FleetKeys, now: UInt64
  ) throws(FleetFault) -> String {
    switch domain.algorithm {
    case .es256:
      let key: MemorySigningKey
      do throws(CryptographyFailure) { key = try MemorySigningKey(scalar: try P256PrivateKey().scalar()) } catch {
        throw .cryptography
      }
      return try CompactToken.signed(claims, as: .app, by: key, named: try keys.appKey(at: now).id)
    case .hs256:
      let epoch = keys.apps.domainEpoch(domain.name)
      return try CompactToken.signed(
        claims, as: .app, sharedKey: try keys.decoyKey(domain: domain.name, epoch: epoch), epoch: epoch)
    }
  }
}

extension FleetSession {
  /// Returns name and version of an approved image; those of the newest one if this one is not approved.
  fileprivate func likelyApp(_ image: ImageDigest?) throws(FleetFault) -> (BoundedText<64>, AppVersion) {
    guard
      let row = try row(
        """
        SELECT i.subject, i.major, i.minor, i.patch
        FROM images i LEFT JOIN image_trees t ON t.digest = i.digest WHERE i.withdrawn IS NULL
        ORDER BY CASE WHEN i.digest = $1 OR t.tree = $2 THEN 0 ELSE 1 END, i.added DESC, i.digest LIMIT 1
        """,
        .bytes(image?.flat?.array ?? []), .bytes(image?.tree?.array ?? []))
    else { return (BoundedText("app" as StaticString), .zero) }
    return try decoding { () throws(SQLFault) -> (BoundedText<64>, AppVersion) in
      guard let subject = BoundedText<64>(try row.text(0)) else { throw .misuse }
      return (
        subject,
        AppVersion(major: try row.unsigned(1), minor: try row.unsigned(2), patch: try row.unsigned(3))
      )
    }
  }
}
