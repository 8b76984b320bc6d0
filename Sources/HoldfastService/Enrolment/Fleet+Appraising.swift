import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// Evidence as an app presents it, whose form was checked.
struct PresentedEvidence: Sendable {
  let submitted: SubmittedEvidence
  /// The digest under which the evidence is remembered. The measurements cannot be computed from it.
  let fingerprint: Digest
  /// SHA-256 of the evidence, to which a development code belongs.
  let digest: Digest
  /// The id of the device for which the app wants a token; empty for an app that wants no measurement token.
  let presenter: [UInt8]
  /// The seconds for which the same evidence may be presented again.
  let seconds: UInt64
  /// The code that proves the knowledge of the development key.
  let development: Digest?

  /// - Parameter device: The device for which the app wants a measurement token; nil if it wants none.
  /// - Throws: `malformed`, `cryptography`.
  init(_ evidence: [UInt8], by device: DeviceID?, development: Digest?) throws(AppraisalError) {
    submitted = try SubmittedEvidence(evidence)
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var hash = cryptography.sha256()
      hash.append(domain: "holdfast/1 appraised evidence")
      hash.append(evidence.span)
      fingerprint = try hash.finish()
      var plain = cryptography.sha256()
      plain.append(evidence.span)
      digest = try plain.finish()
    } catch { throw .cryptography }
    presenter = device?.array ?? []
    seconds = device == nil ? Evidence.freshnessSeconds : Fleet.baselineSeconds
    self.development = development
  }
}

/// An app whose evidence was appraised and approved.
struct ApprovedApp: ~Copyable {
  let evidence: Evidence
  let approval: ApprovedImage
  /// The keys of the release that the evidence names.
  let release: ReleaseKeys
  let hostID: HostID
  let code: BoundedText<16>
  /// Whether the development key waived reasons for refusal.
  let isDevelopment: Bool
}

/// The outcome of an appraisal.
enum AppraisalOutcome: ~Copyable {
  case approved(ApprovedApp)
  /// The second value is the host of the app, where the evidence is authentic.
  case refused(Refusal, HostID?)
}

/// The outcome of a check of who made evidence.
enum AuthenticationOutcome {
  case authentic(HostID, BoundedText<16>)
  case refused(Refusal)
}

extension Fleet {
  /// Appraises evidence, and records the outcome.
  func appraise(
    _ presented: PresentedEvidence, with keys: FleetKeys, in session: FleetSession
  ) throws(FleetFault) -> AppraisalOutcome {
    // Who made the evidence is not known yet, so nothing is written before that.
    let submitted = presented.submitted
    let (sealed, image, appraisal) = (
      try session.sealedReleaseKeys(submitted.releaseID), try session.approvedImage(submitted.image),
      try session.appraisal(of: submitted.salt)
    )
    guard let sealed = try sealed.found() else { return .refused(try unauthentic(.unknownProofKey, in: session), nil) }
    let release = try serviceKey.releaseKeys(submitted.releaseID, sealed)
    guard let evidence = submitted.authentic(with: release) else {
      return .refused(try unauthentic(.notAuthentic, in: session), nil)
    }
    let (hostID, code) = try keys.withSigner { (signer) throws(FleetFault) in
      try Self.identify(evidence, signer.account)
    }
    try session.remember(code, of: hostID, evidence)
    let (approved, earlier) = (try image.found(), try appraisal.found())
    var refusals = evidence.refusals(
      approved, defaultKey: release.id, refusing: keys.policy.refusedProperties,
      permitting: keys.policy.measurementPolicy, now: earlier == nil ? session.now : nil)
    var approval = approved
    var isDevelopment = false
    var reasons: [RefusalReason] = []
    if let code = presented.development {
      if try admits(developmentCode: code, of: presented.digest, keys.apps) {
        refusals.removeAll { $0.isWaivedInDevelopment }
        approval = evidence.image.map { .development($0, release: release.id) }
        isDevelopment = true
      } else {
        reasons.append(.developmentKey)
      }
    }
    reasons = refusals.map { RefusalReason($0) } + reasons
    if !keys.knows(baselineOf: evidence.configuration.created, firstSeen: earlier?.firstSeen),
      !reasons.contains(RefusalReason(.notFresh))
    {
      reasons.append(RefusalReason(.notFresh))
    }
    if reasons.isEmpty || earlier != nil, try !session.admits(presented, earlier) {
      reasons.append(RefusalReason(.repeated))
    }
    guard reasons.isEmpty, let approval else {
      let refusal = Refusal(reasons: reasons.isEmpty ? [RefusalReason(.incomplete)] : reasons, code: code)
      try session.record(
        refusal, at: presented.presenter.isEmpty ? "fetch" : "attest", device: DeviceID(presented.presenter.span),
        prover: hostID, image: evidence.image?.digest)
      return .refused(refusal, hostID)
    }
    let isRevoked = try session.remember(hostID)
    // An attestation for a device is refused when its token is asked for, with what else is known then.
    if presented.presenter.isEmpty, try isRevoked.found() ?? true {
      let refusal = Refusal(reasons: [.revokedProver], code: code)
      try session.record(refusal, at: "fetch", device: nil, prover: hostID, image: evidence.image?.digest)
      return .refused(refusal, hostID)
    }
    return .approved(
      ApprovedApp(
        evidence: evidence, approval: approval, release: release, hostID: hostID, code: code,
        isDevelopment: isDevelopment))
  }

  /// Checks that fresh evidence is that of an app of a registered release, whether the app is approved or not.
  func authenticate(
    _ presented: PresentedEvidence, with keys: FleetKeys, in session: FleetSession
  ) throws(FleetFault) -> AuthenticationOutcome {
    let submitted = presented.submitted
    let (sealed, appraisal) = (
      try session.sealedReleaseKeys(submitted.releaseID), try session.appraisal(of: submitted.salt)
    )
    guard let sealed = try sealed.found() else { return .refused(try unauthentic(.unknownProofKey, in: session)) }
    let release = try serviceKey.releaseKeys(submitted.releaseID, sealed)
    guard let evidence = submitted.authentic(with: release) else {
      return .refused(try unauthentic(.notAuthentic, in: session))
    }
    let (hostID, code) = try keys.withSigner { (signer) throws(FleetFault) in
      try Self.identify(evidence, signer.account)
    }
    let (earlier, created) = (try appraisal.found(), evidence.configuration.created)
    let isFresh =
      earlier != nil || max(session.now, created) - min(session.now, created) <= Evidence.freshnessSeconds
    guard isFresh, keys.knows(baselineOf: created, firstSeen: earlier?.firstSeen) else {
      return .refused(Refusal(reasons: [RefusalReason(.notFresh)], code: code))
    }
    guard try session.admits(presented, earlier) else {
      return .refused(Refusal(reasons: [RefusalReason(.repeated)], code: code))
    }
    return .authentic(hostID, code)
  }

  private func unauthentic(_ reason: AttestationRefusal, in session: FleetSession) throws(FleetFault) -> Refusal {
    let refusal = Refusal(reasons: [RefusalReason(reason)], code: nil)
    try session.count(refusal.reasons)
    return refusal
  }

  private static func identify(
    _ evidence: Evidence, _ account: borrowing AccountDerivations
  ) throws(FleetFault) -> (HostID, BoundedText<16>) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let hostID = try account.deviceID(of: evidence.device, using: &cryptography)
      return (hostID, try account.responseCode(device: hostID, properties: evidence.properties, using: &cryptography))
    } catch { throw .cryptography }
  }
}

/// An earlier appraisal of a baseline.
private struct EarlierAppraisal {
  let evidence: [UInt8]
  let device: [UInt8]
  let firstSeen: UInt64

  /// Returns whether the same evidence may be presented again.
  func admits(_ presented: borrowing PresentedEvidence, at now: UInt64) -> Bool {
    evidence == presented.fingerprint.array && device == presented.presenter
      && now < firstSeen + presented.seconds
  }
}

extension FleetSession {
  /// Looks up the approval of an image, by its digest in the form that it has.
  fileprivate func approvedImage(_ image: ImageDigest?) throws(FleetFault) -> LookUp<ApprovedImage> {
    let query: StaticString =
      image?.tree == nil
      ? """
      SELECT i.subject, i.major, i.minor, i.patch, i.release, i.digest, t.tree
      FROM images i LEFT JOIN image_trees t ON t.digest = i.digest WHERE i.digest = $1 AND i.withdrawn IS NULL
      """
      : """
      SELECT i.subject, i.major, i.minor, i.patch, i.release, i.digest, t.tree
      FROM image_trees t JOIN images i ON i.digest = t.digest WHERE t.tree = $1 AND i.withdrawn IS NULL
      """
    return try lookUp(query, .optional(image?.digest.array)) { (row) throws(FleetFault) in
      let (subject, version, release, digest, tree) = try decoding { () throws(SQLFault) in
        (
          try row.text(0),
          AppVersion(major: try row.unsigned(1), minor: try row.unsigned(2), patch: try row.unsigned(3)),
          try row.bytes(4), try row.bytes(5), try row.isNull(6) ? [] : try row.bytes(6)
        )
      }
      guard let name = BoundedText<64>(subject), let keyID = KeyID(release.span), let digest = Digest(digest.span),
        tree.isEmpty || tree.count == 32
      else { throw .corrupt }
      return ApprovedImage(
        digest: digest, tree: Digest(tree.span), subject: name, version: version, proofKey: keyID)
    }
  }

  /// Looks up the earlier appraisal of a baseline.
  fileprivate func appraisal(of salt: ConfigurationSalt) throws(FleetFault) -> LookUp<EarlierAppraisal> {
    try lookUp("SELECT evidence, device, first_seen FROM appraisals WHERE salt = $1", .copying(salt.bytes)) {
      (row) throws(FleetFault) in
      try decoding { () throws(SQLFault) in
        EarlierAppraisal(evidence: try row.bytes(0), device: try row.bytes(1), firstSeen: try row.unsigned(2))
      }
    }
  }

  /// Remembers a new baseline, and returns whether this evidence may be presented for this device, or for none: of several
  /// requests at once with one salt, the first determines both.
  fileprivate func admits(
    _ presented: borrowing PresentedEvidence, _ earlier: EarlierAppraisal?
  ) throws(FleetFault) -> Bool {
    if let earlier { return earlier.admits(presented, at: now) }
    let salt = presented.submitted.salt
    let isNew =
      try run(
        """
        INSERT INTO appraisals (salt, evidence, device, first_seen) VALUES ($1, $2, $3, $4) ON CONFLICT (salt) DO NOTHING
        """,
        .copying(salt.bytes), .copying(presented.fingerprint.bytes), .bytes(presented.presenter), .unsigned(now)) == 1
    guard !isNew, let first = try appraisal(of: salt).found() else { return isNew }
    return first.admits(presented, at: now)
  }

  /// Remembers the meaning of a response code, and what the app stated last with it.
  fileprivate func remember(_ code: BoundedText<16>, of hostID: HostID, _ evidence: Evidence) throws(FleetFault) {
    try send(
      """
      INSERT INTO response_codes (code, prover, properties, first_seen) VALUES ($1, $2, $3, $4)
      ON CONFLICT (code) DO NOTHING
      """,
      .text(code.description), .copying(hostID.bytes),
      .text(evidence.properties.map { $0.description }.joined(separator: " ")), .unsigned(now))
    guard let statements = evidence.statements else { return }
    let properties = JSONValue.array(statements.appProperties.map { .string($0.description.printable) })
    try send(
      """
      INSERT INTO code_statements (code, app_properties, system_id, system_version, user_property, seen)
      VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (code) DO UPDATE SET app_properties = excluded.app_properties, system_id = excluded.system_id,
        system_version = excluded.system_version, user_property = excluded.user_property, seen = excluded.seen
      """,
      .text(code.description), .text(String(decoding: properties.compact(), as: UTF8.self)),
      .optional(statements.systemID?.description.printable), .optional(statements.systemVersion?.description.printable),
      .optional(statements.userProperty?.description), .unsigned(now))
  }

  /// Remembers a prover's host and the time at which it was seen last. Until the transaction ends, others wait to do so.
  ///
  /// - Returns: Whether the prover was revoked.
  @discardableResult
  func remember(_ hostID: HostID) throws(FleetFault) -> LookUp<Bool> {
    try lookUp(
      """
      INSERT INTO provers (id, first_seen, last_seen) VALUES ($1, $2, $2)
      ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen
      RETURNING revoked
      """,
      .copying(hostID.bytes), .unsigned(now)
    ) { (row) throws(FleetFault) in try decoding { () throws(SQLFault) in try !row.isNull(0) } }
  }
}
