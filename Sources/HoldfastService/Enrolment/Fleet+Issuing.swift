import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The wishes of a prover that asks for a token. They never give it more than an invitation or an operator permits.
package struct TokenWishes: Sendable, Equatable {
  /// The format of the token.
  package var format: MeasurementTokenFormat = .cose
  /// The user of the prover, 1 to 32 bytes, for an operator's decision.
  package var user: BoundedText<32>?
  /// The commands that the prover needs, for an operator's decision; nil for all that the policy allows.
  package var commands: [BoundedText<32>]?

  /// Creates wishes for a token in COSE.
  package init() {}
}

/// The service's answer to a request for a token.
package enum TokenAnswer: Sendable, Equatable {
  /// The token: a new one, or that of an earlier request for the same baseline.
  case issued(StoredToken)
  /// An operator has to decide about the request with this id, 16 bytes.
  case waiting(RequestID)
  /// There is no token.
  case refused(Refusal)
}

/// A measurement token as the service stores it.
package struct StoredToken: Sendable, Equatable {
  /// The id of the token (claim `jti`), which operators may know, and provers not.
  package let id: TokenID
  /// The token, at most 3072 bytes, which only the device can read.
  package let bytes: [UInt8]
  /// The format: `cose` or `jose`.
  package let format: String
  /// The claims that the prover may know.
  package let claims: JSONValue
  /// The issuer's terms, a compact JWS; nil if the policy has no conditions. They are not stored: each answer has the present ones.
  package var terms: [UInt8]?
}

/// The id of a request that waits for a decision, 16 random bytes. Anyone who knows it may ask for its state.
package typealias RequestID = TypedBytes<RequestIDKind, 16>
/// The kind of ``RequestID``.
package enum RequestIDKind {}

extension Fleet {
  /// Issues a measurement token to an attested app, on an invitation or on an operator's decision.
  ///
  /// The same request gets the same token again, so that a lost answer does no harm: a token belongs to one baseline, and a
  /// baseline to one device.
  ///
  /// - Parameters:
  ///   - token: The attestation token.
  ///   - device: The device for which the app was attested.
  ///   - hash: The digest of the app's data with which it was attested, 32 bytes; nil if there was none.
  ///   - invitation: The code of an invitation; nil to ask an operator.
  ///   - wishes: The wishes of the prover.
  package func issue(
    attestation token: [UInt8], for device: DeviceDescriptor, hash: Digest? = nil, invitation: InvitationCode?,
    wishes: TokenWishes
  ) throws(FleetFault) -> TokenAnswer {
    let code: Digest? = if let invitation { try invitation.digest() } else { nil }
    return try transaction { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      let attested: AttestedApp
      do throws(IssuanceRefusal) {
        attested = try keys.withOpener { (opener) throws(IssuanceRefusal) in
          try opener.open(
            token.span, for: device, hash: hash, audiences: keys.apps.audiences, under: keys.policy, now: session.now)
        }
      } catch {
        let refusal = Refusal(reasons: [RefusalReason(error)], code: nil)
        try session.count(refusal.reasons)
        return .refused(refusal)
      }
      let issuing = Issuing(session: session, keys: keys, device: device, invitation: code, wishes: wishes)
      switch try issuing.answer(attested) {
      case .refused(let reason):
        let refusal = Refusal(reasons: [reason], code: attested.responseCode)
        try session.record(refusal, at: "issue", device: device.deviceID, prover: attested.hostID)
        return .refused(refusal)
      case .waiting(let id): return .waiting(id)
      case .issued(let token): return .issued(token)
      }
    }
  }
}

/// One request for a token, in its transaction. Rows are locked in the order device, prover, invitation or request, user, so that
/// requests and revocations take effect one after the other. The first of these look-ups are sent together.
private struct Issuing {
  let session: FleetSession
  let keys: FleetKeys
  let device: DeviceDescriptor
  let invitation: Digest?
  let wishes: TokenWishes

  enum Answer {
    case issued(StoredToken), waiting(RequestID), refused(RefusalReason)
  }

  func answer(_ attested: borrowing AttestedApp) throws(FleetFault) -> Answer {
    let standing = try session.standing(of: device, admission: keys.policy.devices)
    let isRevoked = try session.remember(attested.hostID)
    let earlier = try session.token(of: attested.app.baseline)
    let invited: LookUp<StoredInvitation>? = if let invitation { try session.invitation(invitation) } else { nil }
    let generation: UInt64
    switch try standing.found() ?? .refused(.unknownDevice) {
    case .refused(let reason): return .refused(reason)
    case .admitted(let current): generation = current
    }
    guard let isRevoked = try isRevoked.found() else { throw .corrupt }
    if isRevoked { return .refused(.revokedProver) }
    if let earlier = try earlier.found() { return try repeated(earlier, invited, attested) }
    switch try permission(invited, attested) {
    case .refused(let reason): return .refused(reason)
    case .waiting(let id): return .waiting(id)
    case .granted(let grant): return .issued(try issue(grant, to: attested, generation: generation))
    }
  }

  /// Answers a request for a baseline that has a token.
  private func repeated(
    _ earlier: EarlierToken, _ invited: LookUp<StoredInvitation>?, _ attested: borrowing AttestedApp
  ) throws(FleetFault) -> Answer {
    guard earlier.device == device.deviceID.array else { return .refused(.baselineOfAnotherDevice) }
    guard earlier.prover == attested.hostID.array else { return .refused(.anotherProver) }
    guard !earlier.isRevoked else { return .refused(.revokedToken) }
    guard earlier.expires > session.now else { return .refused(.expiredToken) }
    if let invited, try invited.found()?.token != earlier.token.id.array { return .refused(.usedInvitation) }
    var token = earlier.token
    token.terms = try terms(of: token, attested)
    return .issued(token)
  }

  /// Signs the terms of a token under the present policy. The prover is online now, so that its time begins anew.
  private func terms(of token: StoredToken, _ attested: borrowing AttestedApp) throws(FleetFault) -> [UInt8]? {
    guard var key = keys.issuer(at: session.now)?.key else { throw .corrupt }
    do throws(TokenWritingFault) {
      return try signedTerms(
        of: token.bytes, subject: attested.app.subject, version: attested.app.version, from: keys.policy.issuer,
        conditions: keys.policy.conditions(of: attested.app.subject, attested.app.version, for: device.deviceID),
        now: session.now, key: &key)
    } catch { throw error == .cryptography ? .cryptography : .corrupt }
  }

  private enum Permission {
    case granted(Grant), waiting(RequestID), refused(RefusalReason)
  }

  private func permission(
    _ invited: LookUp<StoredInvitation>?, _ attested: borrowing AttestedApp
  ) throws(FleetFault) -> Permission {
    let grant: Grant
    if let invited {
      guard let found = try invited.found() else { return .refused(.unknownInvitation) }
      guard found.device == device.deviceID.array else { return .refused(.invitationForAnotherDevice) }
      guard !found.isRevoked else { return .refused(.revokedInvitation) }
      guard found.token == nil else { return .refused(.usedInvitation) }
      guard found.expires > session.now else { return .refused(.expiredInvitation) }
      grant = found.grant
    } else {
      switch try request(attested) {
      case .granted(let granted): grant = granted
      case let other: return other
      }
    }
    if let user = grant.user, try session.lockUser(user) { return .refused(.revokedUser) }
    return .granted(grant)
  }

  /// Finds the request of the baseline, or makes one.
  private func request(_ attested: borrowing AttestedApp) throws(FleetFault) -> Permission {
    if let found = try session.request(of: attested.app.baseline) {
      guard found.device == device.deviceID.array else { return .refused(.baselineOfAnotherDevice) }
      guard found.prover == attested.hostID.array else { return .refused(.anotherProver) }
      switch found.status(at: session.now) {
      case .waiting: return .waiting(found.id)
      case .approved: return .granted(found.grant)
      case .refused: return .refused(.refusedRequest)
      case .collected, .expired: return .refused(.expiredRequest)
      }
    }
    guard try session.canWait() else { return .refused(.tooManyRequests) }
    var random = SystemRandom()
    let id: RequestID
    do throws(RandomFailure) { id = try random.fixedBytes() } catch { throw .cryptography }
    try session.insertRequest(id, attested, for: device.deviceID, wishes)
    return .waiting(id)
  }

  private func issue(
    _ grant: Grant, to attested: borrowing AttestedApp, generation: UInt64
  ) throws(FleetFault) -> StoredToken {
    guard let issuer = keys.issuer(at: session.now) else { throw .corrupt }
    var options = IssuanceOptions()
    options.format = wishes.format
    options.validitySeconds = keys.policy.tokenSeconds
    options.commands = grant.commands ?? keys.policy.commands.map { $0.map { $0.description } }
    options.maximumUses = grant.maximumUses ?? keys.policy.maximumUses
    options.user = grant.user
    var random = SystemRandom()
    let issued: IssuedToken
    do throws(TokenError) {
      issued = try TokenIssuer(name: keys.policy.issuer, key: issuer.key).issue(
        to: attested.app, for: device, generation: generation, options: options, now: session.now, random: &random)
    } catch { throw error == .cryptography ? .cryptography : .corrupt }
    var token = StoredToken(
      id: issued.tokenID, bytes: issued.bytes, format: wishes.format == .cose ? "cose" : "jose",
      claims: IssuanceReport(issued.claims).json)
    token.terms = try terms(of: token, attested)
    try session.insert(
      issued, token, options: options, attested, device: device.deviceID, generation: generation, signer: issuer.id)
    try session.markUsed(grant.source, by: attested, token: issued.tokenID)
    return token
  }
}

/// A permission to issue one token.
struct Grant: Sendable, Equatable {
  enum Source: Sendable, Equatable {
    case invitation([UInt8]), request([UInt8])
  }
  /// The invitation or the request that the permission comes from, by its id.
  let source: Source
  let user: String?
  /// The commands; nil for those of the policy.
  let commands: [String]?
  let maximumUses: UInt64?
}
