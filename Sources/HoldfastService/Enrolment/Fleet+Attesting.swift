import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The service's answer to evidence.
package enum AttestationAnswer: Sendable, Equatable {
  /// The app is approved.
  case attested(Attestation)
  /// The app is not approved.
  case refused(Refusal)
}

extension Fleet {
  /// The time for which an appraised baseline may be attested again, in seconds: as long as an operator's decision counts.
  static let baselineSeconds: UInt64 = 24 * 3600

  /// Appraises evidence, and issues an attestation token for one device.
  ///
  /// A baseline is new only once: its time must be within five minutes of the service's clock. For 24 hours after that, the
  /// same evidence is attested again for the same device, so that a lost answer does no harm and an operator has time to
  /// decide.
  ///
  /// - Parameters:
  ///   - evidence: The evidence, at most 65,536 bytes. It is not stored: the measurements can be computed from it.
  ///   - device: The device for which the app wants a measurement token. It need not be registered.
  package func attest(
    _ evidence: [UInt8], for device: DeviceDescriptor
  ) throws(FleetFault) -> AttestationAnswer {
    let submitted: SubmittedEvidence
    do throws(AppraisalError) { submitted = try SubmittedEvidence(evidence) } catch {
      return .refused(Refusal(reasons: [.notEvidence], code: nil))
    }
    let fingerprint: Digest
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var hash = cryptography.sha256()
      hash.append(domain: "holdfast/1 appraised evidence")
      hash.append(evidence.span)
      fingerprint = try hash.finish()
    } catch { throw .cryptography }
    return try transaction { (session) throws(FleetFault) in
      try self.attest(submitted, fingerprint: fingerprint, for: device, in: session)
    }
  }

  private func attest(
    _ submitted: SubmittedEvidence, fingerprint: Digest, for device: DeviceDescriptor, in session: FleetSession
  ) throws(FleetFault) -> AttestationAnswer {
    // Who made the evidence is not known yet, so nothing is written before that.
    let (sealed, image, appraisal) = (
      try session.sealedReleaseKeys(submitted.releaseID), try session.approvedImage(submitted.image),
      try session.appraisal(of: submitted.salt)
    )
    let keys = try keys(in: session)
    guard let sealed = try sealed.found() else { return try unauthentic(.unknownProofKey, in: session) }
    let release = try serviceKey.releaseKeys(submitted.releaseID, sealed)
    guard let evidence = submitted.authentic(with: release) else { return try unauthentic(.notAuthentic, in: session) }
    let (hostID, code) = try keys.withSigner { (signer) throws(FleetFault) in
      try Self.identify(evidence, signer.account)
    }
    try session.remember(code, of: hostID, properties: evidence.properties)
    let (approved, earlier) = (try image.found(), try appraisal.found())
    var reasons = evidence.refusals(
      approved, defaultKey: release.id, refusing: keys.policy.refusedProperties, now: earlier == nil ? session.now : nil
    ).map { RefusalReason($0) }
    if !keys.knows(baselineOf: evidence.configuration.created, firstSeen: earlier?.firstSeen),
      !reasons.contains(RefusalReason(.notFresh))
    {
      reasons.append(RefusalReason(.notFresh))
    }
    if reasons.isEmpty || earlier != nil,
      try !session.admits(evidence.configuration.salt, fingerprint, for: device.deviceID, earlier)
    {
      reasons.append(RefusalReason(.repeated))
    }
    guard reasons.isEmpty, let approved else {
      let refusal = Refusal(reasons: reasons, code: code)
      try session.record(refusal, at: "attest", device: device.deviceID, prover: hostID, image: evidence.image)
      return .refused(refusal)
    }
    try session.remember(hostID)
    return .attested(
      try keys.withSigner { (signer) throws(FleetFault) in
        var random = SystemRandom()
        do throws(CryptographyFailure) {
          return try signer.attest(
            evidence, of: approved, keys: release, for: device, under: keys.policy, now: session.now, random: &random)
        } catch { throw .cryptography }
      })
  }

  private func unauthentic(_ reason: AttestationRefusal, in session: FleetSession) throws(FleetFault)
    -> AttestationAnswer
  {
    let refusal = Refusal(reasons: [RefusalReason(reason)], code: nil)
    try session.count(refusal.reasons)
    return .refused(refusal)
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

  /// Returns whether the same evidence may be attested again.
  func admits(_ fingerprint: Digest, for deviceID: DeviceID, at now: UInt64) -> Bool {
    evidence == fingerprint.array && device == deviceID.array && now < firstSeen + Fleet.baselineSeconds
  }
}

extension FleetSession {
  /// Looks up the approval of an image.
  fileprivate func approvedImage(_ digest: Digest?) throws(FleetFault) -> LookUp<ApprovedImage> {
    try lookUp(
      "SELECT subject, major, minor, patch, release, digest FROM images WHERE digest = $1 AND withdrawn IS NULL",
      .optional(digest?.array)
    ) { (row) throws(FleetFault) in
      let (subject, version, release, digest) = try decoding { () throws(SQLFault) in
        (
          try row.text(0),
          AppVersion(major: try row.unsigned(1), minor: try row.unsigned(2), patch: try row.unsigned(3)),
          try row.bytes(4), try row.bytes(5)
        )
      }
      guard let name = BoundedText<64>(subject), let keyID = KeyID(release.span), let digest = Digest(digest.span)
      else { throw .corrupt }
      return ApprovedImage(digest: digest, subject: name, version: version, proofKey: keyID)
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

  /// Remembers a new baseline, and returns whether this evidence may be attested for this device: of several requests at once
  /// with one salt, the first determines both.
  fileprivate func admits(
    _ salt: ConfigurationSalt, _ fingerprint: Digest, for device: DeviceID, _ earlier: EarlierAppraisal?
  ) throws(FleetFault) -> Bool {
    if let earlier { return earlier.admits(fingerprint, for: device, at: now) }
    let isNew =
      try run(
        """
        INSERT INTO appraisals (salt, evidence, device, first_seen) VALUES ($1, $2, $3, $4) ON CONFLICT (salt) DO NOTHING
        """,
        .copying(salt.bytes), .copying(fingerprint.bytes), .copying(device.bytes), .unsigned(now)) == 1
    guard !isNew, let first = try appraisal(of: salt).found() else { return isNew }
    return first.admits(fingerprint, for: device, at: now)
  }

  /// Remembers the meaning of a response code.
  fileprivate func remember(
    _ code: BoundedText<16>, of hostID: HostID, properties: [BoundedText<32>]
  ) throws(FleetFault) {
    try send(
      """
      INSERT INTO response_codes (code, prover, properties, first_seen) VALUES ($1, $2, $3, $4)
      ON CONFLICT (code) DO NOTHING
      """,
      .text(code.description), .copying(hostID.bytes), .text(properties.map { $0.description }.joined(separator: " ")),
      .unsigned(now))
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
