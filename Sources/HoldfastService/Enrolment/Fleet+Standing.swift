import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The present state of a prover's token, as the service knows it.
package struct TokenStanding: Sendable, Equatable {
  /// The states of a token.
  package enum Status: String, Sendable, CaseIterable {
    /// The service would give the token out again.
    case valid
    /// The token has expired.
    case expired
    /// An operator revoked it.
    case revoked
    /// The prover said that it removed its enrolment.
    case left
    /// The device's generation was raised: once the device sees a newer token, it refuses this one.
    case superseded
    /// The device is blocked: it gets no more tokens.
    case blocked
  }

  package let status: Status
  /// The end of its validity, in Unix seconds.
  package let expires: UInt64
  /// The terms of the present policy, a compact JWS; nil if there are none, or the token is not valid.
  package var terms: [UInt8]?
}

/// The name of a token for its prover, which has the bytes of the token, and does not know its id.
package struct HeldToken: Sendable, Equatable {
  /// The device that the token is for.
  let device: DeviceID
  /// SHA-256 of the token's bytes.
  package let digest: Digest

  package init(device: DeviceID, digest: Digest) { (self.device, self.digest) = (device, digest) }
}

/// The service's answer to a prover that asks about its token.
package enum StandingAnswer: Sendable, Equatable {
  case known(TokenStanding)
  case refused(Refusal)
}

extension Fleet {
  /// The reason of a token that its prover gave back.
  static let leavingReason = "left"

  /// Returns the state of a token for the prover that has it, with new terms.
  ///
  /// The prover proves itself by fresh evidence, as for ``fetch(_:wishes:)``: only an approved app on the token's host learns anything.
  ///
  /// - Parameters:
  ///   - evidence: The evidence, at most 65,536 bytes. It is not stored.
  ///   - token: The token.
  package func standing(_ evidence: [UInt8], of token: HeldToken) throws(FleetFault) -> StandingAnswer {
    guard let presented = try presented(evidence) else { return .refused(.notEvidence) }
    return try transaction { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      switch try self.appraise(presented, with: keys, in: session) {
      case .refused(let refusal, _): return .refused(refusal)
      case .approved(let app):
        guard let id = try session.find(token, of: app.hostID) else {
          return .refused(Refusal(reasons: [.unknownToken], code: app.code))
        }
        try session.count("asked")
        let stored = try session.ownToken(id)
        var standing = stored.standing
        // Terms are for the app that asks: another one on the host, or a newer version, gets none of theirs.
        if standing.status == .valid, app.approval.subject == stored.subject, app.approval.version == stored.version {
          standing.terms = try keys.terms(of: stored, now: session.now)
        }
        return .known(standing)
      }
    }
  }

  /// Records that a prover removed its enrolment: its token is revoked. The same call may be repeated.
  ///
  /// A prover whose app is no longer approved may leave too, so only the evidence's authenticity counts.
  ///
  /// - Parameters:
  ///   - evidence: The evidence, at most 65,536 bytes. It is not stored.
  ///   - token: The token.
  package func leave(_ evidence: [UInt8], token: HeldToken) throws(FleetFault) -> StandingAnswer {
    guard let presented = try presented(evidence) else { return .refused(.notEvidence) }
    return try transaction { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      let (hostID, code): (HostID, BoundedText<16>)
      switch try self.authenticate(presented, with: keys, in: session) {
      case .refused(let refusal): return .refused(refusal)
      case .authentic(let id, let responseCode): (hostID, code) = (id, responseCode)
      }
      guard let id = try session.find(token, of: hostID) else {
        return .refused(Refusal(reasons: [.unknownToken], code: code))
      }
      let changed = try session.run(
        "UPDATE tokens SET revoked = $2, reason = $3 WHERE id = $1 AND revoked IS NULL", .copying(id.bytes),
        .unsigned(session.now), .text(Self.leavingReason))
      if changed == 1 {
        try session.log("token.leave", hexadecimal(id), by: .service)
        try session.count("left")
      }
      // An operator may have revoked it before.
      return .known(try session.ownToken(id).standing)
    }
  }

  private func presented(_ evidence: [UInt8]) throws(FleetFault) -> PresentedEvidence? {
    do throws(AppraisalError) { return try PresentedEvidence(evidence, by: nil, development: nil) } catch {
      if case .cryptography = error { throw .cryptography }
      return nil
    }
  }
}

/// A token of a prover, as it is stored.
private struct OwnToken {
  let standing: TokenStanding
  let device: DeviceID
  let subject: BoundedText<64>
  let version: AppVersion
  let bytes: [UInt8]
  /// The issuer's key that signed it.
  let signer: KeyID
}

extension FleetSession {
  /// Finds a token of a prover, the newest first; nil if there is none with these bytes for the device, or it is another prover's.
  fileprivate func find(_ token: HeldToken, of prover: HostID) throws(FleetFault) -> TokenID? {
    let rows = try rows(
      "SELECT id, bytes FROM tokens WHERE prover = $1 AND device = $2 ORDER BY issued DESC", .copying(prover.bytes),
      .copying(token.device.bytes))
    for row in rows {
      let (id, bytes) = try decoding { () throws(SQLFault) in (try row.bytes(0), try row.bytes(1)) }
      let digest: Digest
      do throws(CryptographyFailure) { digest = try Terms.digest(of: bytes) } catch { throw .cryptography }
      if digest == token.digest { return TokenID(id.span) }
    }
    return nil
  }

  /// Returns the token of this id.
  ///
  /// - Throws: `corrupt` if there is none.
  fileprivate func ownToken(_ id: TokenID) throws(FleetFault) -> OwnToken {
    guard
      let row = try row(
        """
        SELECT t.device, t.subject, t.version, t.bytes, t.expires, t.generation, t.revoked, t.reason, d.generation,
          d.blocked, t.signer, (SELECT count(*) FROM key_orders k WHERE k.kid = t.signer AND k.ended IS NOT NULL
            AND (k.audience = t.device OR k.audience IN (SELECT audience FROM group_devices WHERE device = t.device)))
        FROM tokens t LEFT JOIN devices d ON d.id = t.device WHERE t.id = $1
        """,
        .copying(id.bytes))
    else { throw .corrupt }
    return try decoding { () throws(SQLFault) -> OwnToken in
      let (device, name, version) = (try row.bytes(0), try row.text(1), try row.text(2))
      let numbers = version.split(separator: ".").compactMap { UInt64($0) }
      let signer = try row.bytes(10)
      guard let device = DeviceID(device.span), let subject = BoundedText<64>(name), numbers.count == 3,
        let signer = KeyID(signer.span)
      else { throw .misuse }
      let expires = try row.unsigned(4)
      let status: TokenStanding.Status
      if try !row.isNull(6) {
        status = try row.optionalText(7) == Fleet.leavingReason ? .left : .revoked
      } else if expires <= now {
        status = .expired
      } else if try row.isNull(8) {
        status = .blocked
      } else if try !row.isNull(9) {
        status = .blocked
      } else {
        let (present, own, endedCount) = (try row.unsigned(8), try row.unsigned(5), try row.unsigned(11))
        // A device trusts no token of a key that ended there.
        status = present > own || endedCount > 0 ? .superseded : .valid
      }
      return OwnToken(
        standing: TokenStanding(status: status, expires: expires), device: device, subject: subject,
        version: AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2]), bytes: try row.bytes(3),
        signer: signer)
    }
  }
}

extension FleetKeys {
  /// Signs the terms of a token under the present policy, with the token's own key, which the prover knows, as long as it is kept.
  /// The prover is online now, so that its time begins anew.
  fileprivate func terms(of token: OwnToken, now: UInt64) throws(FleetFault) -> [UInt8]? {
    guard var key = (issuers.first { $0.id == token.signer } ?? issuer(at: now))?.key else { throw .corrupt }
    do throws(TokenWritingFault) {
      return try signedTerms(
        of: token.bytes, subject: token.subject, version: token.version, from: policy.issuer,
        conditions: policy.conditions(of: token.subject, token.version, for: token.device), now: now, key: &key)
    } catch { throw error == .cryptography ? .cryptography : .corrupt }
  }
}
