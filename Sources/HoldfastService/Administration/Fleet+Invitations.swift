import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastStorage

/// The terms that an operator permits: the token that an invitation or a decision is good for.
package struct TokenPermission: Sendable, Equatable {
  /// The only user whose codes go with the token; nil for any.
  package var user: BoundedText<32>?
  /// The commands, at most 16; nil for those of the policy.
  package var commands: [BoundedText<32>]?
  /// The number of rounds that the device accepts; nil for that of the policy.
  package var maximumUses: UInt64?

  /// Creates a permission for any user, and what the policy allows.
  package init() {}

  /// The columns of a permission.
  fileprivate var userName: String? { user?.description }
  fileprivate var commandText: String? { CommandList.encode(commands?.map { $0.description }) }
}

/// The id of an invitation, 16 bytes, by which operators name it. It does not open the invitation.
package typealias InvitationID = TypedBytes<InvitationIDKind, 16>
/// The kind of ``InvitationID``.
package enum InvitationIDKind {}

extension Fleet {
  /// Makes an invitation: a code with which one prover gets one token for one device.
  ///
  /// - Parameters:
  ///   - device: The device, which must be registered.
  ///   - permission: The token's properties.
  ///   - seconds: The lifetime of the code, in seconds.
  /// - Returns: The id, and the code, which is not stored and cannot be shown again.
  /// - Throws: `notFound` if the device is not registered.
  package func invite(
    to device: DeviceID, _ permission: TokenPermission, for seconds: UInt64, by actor: Actor
  ) throws(AdministrationFault) -> (id: InvitationID, code: InvitationCode) {
    var random = SystemRandom()
    let code: InvitationCode
    let id: InvitationID
    do throws(RandomFailure) { (code, id) = (try InvitationCode(random: &random), try random.fixedBytes()) } catch {
      throw .fleet(.cryptography)
    }
    let digest: Digest
    do throws(FleetFault) { digest = try code.digest() } catch { throw .fleet(error) }
    try change("invitation.create", hexadecimal(id), by: actor, hexadecimal(device)) { (session) throws(FleetFault) in
      guard
        try session.row("SELECT id FROM devices WHERE id = $1 FOR SHARE", .copying(device.bytes)) != nil
      else { return 0 }
      if let user = permission.userName { try session.addUser(user) }
      return try session.run(
        """
        INSERT INTO invitations (id, digest, device, username, commands, maximum_uses, created, creator, expires)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        .copying(id.bytes), .copying(digest.bytes), .copying(device.bytes), .optional(permission.userName),
        .optional(permission.commandText), .optional(permission.maximumUses),
        .unsigned(session.now), .text(actor.name), .unsigned(session.now + seconds))
    }
    return (id, code)
  }

  /// Revokes an invitation that was not used.
  ///
  /// - Throws: `notFound`; `conflict` if it was used or revoked.
  package func revoke(invitation: InvitationID, by actor: Actor) throws(AdministrationFault) {
    try decide(
      "invitation.revoke", hexadecimal(invitation), by: actor, else: .usedInvitation,
      lookup: { (session) throws(FleetFault) in
        try session.row("SELECT id FROM invitations WHERE id = $1 FOR UPDATE", .copying(invitation.bytes)) != nil
      }
    ) { (session) throws(FleetFault) in
      try session.run(
        "UPDATE invitations SET revoked = $2 WHERE id = $1 AND token IS NULL AND revoked IS NULL",
        .copying(invitation.bytes), .unsigned(session.now))
    }
  }

  /// Approves a request that waits. The prover may collect its token within 24 hours.
  ///
  /// - Throws: `notFound`; `conflict` if it was decided or has expired.
  package func approve(
    request: RequestID, _ permission: TokenPermission, by actor: Actor
  ) throws(AdministrationFault) {
    try decide(
      "request.approve", hexadecimal(request), by: actor, else: .decidedRequest,
      lookup: { (session) throws(FleetFault) in try Self.exists(request, in: session) }
    ) { (session) throws(FleetFault) in
      if let user = permission.userName { try session.addUser(user) }
      return try session.run(
        """
        UPDATE requests SET status = 'approved', decided = $2, decider = $3, username = $4, commands = $5,
          maximum_uses = $6
        WHERE id = $1 AND status = 'waiting' AND created > $7
        """,
        .copying(request.bytes), .unsigned(session.now), .text(actor.name), .optional(permission.userName),
        .optional(permission.commandText), .optional(permission.maximumUses),
        .unsigned(session.now - min(session.now, Self.baselineSeconds)))
    }
  }

  /// Refuses a request that waits.
  ///
  /// - Throws: `notFound`; `conflict` if it was decided.
  package func refuse(
    request: RequestID, reason: RevocationReason, by actor: Actor
  ) throws(AdministrationFault) {
    try decide(
      "request.refuse", hexadecimal(request), by: actor, else: .decidedRequest,
      lookup: { (session) throws(FleetFault) in try Self.exists(request, in: session) }
    ) { (session) throws(FleetFault) in
      return try session.run(
        """
        UPDATE requests SET status = 'refused', decided = $2, decider = $3, reason = $4
        WHERE id = $1 AND status = 'waiting'
        """,
        .copying(request.bytes), .unsigned(session.now), .text(actor.name), .text(reason.description))
    }
  }

  /// The state of a request for the prover that made it; nil if there is no such request.
  package func status(
    of request: RequestID
  ) throws(FleetFault) -> (status: RequestStatus, reason: String?)? {
    try read { (session) throws(FleetFault) in
      guard
        let row = try session.row(
          """
          SELECT id, device, prover, created, decided, status, username, commands, maximum_uses, reason FROM requests
          WHERE id = $1
          """,
          .copying(request.bytes))
      else { return nil }
      let reason = try session.decoding { () throws(SQLFault) in try row.optionalText(9) }
      return (try StoredRequest(row, in: session).status(at: session.now), reason)
    }
  }

  /// Runs a change that the state of its record may not permit.
  ///
  /// - Parameters:
  ///   - lookup: Returns whether there is the record, and locks it.
  ///   - body: Returns the number of records that it changed: 0 if the state does not permit it.
  private func decide(
    _ action: StaticString, _ object: String, by actor: Actor, else conflict: AdministrationFault.Conflict,
    lookup: (FleetSession) throws(FleetFault) -> Bool, _ body: (FleetSession) throws(FleetFault) -> Int
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      guard try session.running({ (session) throws(FleetFault) in try lookup(session) }) else { throw .notFound }
      let count = try session.running { (session) throws(FleetFault) in
        let count = try body(session)
        if count == 1 { try session.log(action, object, by: actor) }
        return count
      }
      guard count == 1 else { throw .conflict(conflict) }
    }
  }

  private static func exists(_ request: RequestID, in session: FleetSession) throws(FleetFault) -> Bool {
    try session.row("SELECT id FROM requests WHERE id = $1 FOR UPDATE", .copying(request.bytes)) != nil
  }
}
