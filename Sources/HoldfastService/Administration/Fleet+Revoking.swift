import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// A revocation: the reason that operators see.
package typealias RevocationReason = BoundedText<255>

extension Fleet {
  /// Revokes a token. Revoking it again keeps the first time and reason.
  ///
  /// The service never gives it out again. A device learns of it from a bulletin, through a higher generation, or when it expires.
  package func revoke(token: TokenID, reason: RevocationReason, by actor: Actor) throws(AdministrationFault) {
    try change("token.revoke", hexadecimal(token), by: actor, reason.description) { (session) throws(FleetFault) in
      try session.run(
        "UPDATE tokens SET reason = CASE WHEN revoked IS NULL THEN $3 ELSE reason END, revoked = coalesce(revoked, $2) WHERE id = $1",
        .copying(token.bytes), .unsigned(session.now), .text(reason.description))
    }
  }

  /// Revokes a prover's host with all its tokens. It gets no more tokens.
  package func revoke(prover: HostID, reason: RevocationReason, by actor: Actor) throws(AdministrationFault) {
    try change("prover.revoke", hexadecimal(prover), by: actor, reason.description) { (session) throws(FleetFault) in
      let count = try session.run(
        "UPDATE provers SET revoked = coalesce(revoked, $2), reason = $3 WHERE id = $1", .copying(prover.bytes),
        .unsigned(session.now), .text(reason.description))
      try session.run(
        "UPDATE tokens SET revoked = $2, reason = $3 WHERE prover = $1 AND revoked IS NULL", .copying(prover.bytes),
        .unsigned(session.now), .text(reason.description))
      return count
    }
  }

  /// Revokes a user with all tokens and unused invitations. The user gets no more tokens.
  package func revoke(user: BoundedText<32>, reason: RevocationReason, by actor: Actor) throws(AdministrationFault) {
    try change("user.revoke", user.description, by: actor, reason.description) { (session) throws(FleetFault) in
      try session.addUser(user.description)
      let count = try session.run(
        "UPDATE users SET revoked = coalesce(revoked, $2), reason = $3 WHERE name = $1", .text(user.description),
        .unsigned(session.now), .text(reason.description))
      try session.run(
        "UPDATE tokens SET revoked = $2, reason = $3 WHERE username = $1 AND revoked IS NULL", .text(user.description),
        .unsigned(session.now), .text(reason.description))
      return count
    }
  }

  /// Revokes all tokens for a device, blocks it and raises its generation, so that it refuses them all once it sees a token of
  /// the new generation.
  package func revoke(device: DeviceID, reason: RevocationReason, by actor: Actor) throws(AdministrationFault) {
    try change("device.revoke", hexadecimal(device), by: actor, reason.description) { (session) throws(FleetFault) in
      let count = try session.run(
        "UPDATE devices SET blocked = coalesce(blocked, $2), generation = generation + 1 WHERE id = $1",
        .copying(device.bytes), .unsigned(session.now))
      try session.run(
        "UPDATE tokens SET revoked = $2, reason = $3 WHERE device = $1 AND revoked IS NULL", .copying(device.bytes),
        .unsigned(session.now), .text(reason.description))
      return count
    }
  }

  /// Lets a revoked prover enrol again. Its revoked tokens stay revoked.
  package func reinstate(prover: HostID, by actor: Actor) throws(AdministrationFault) {
    try change("prover.reinstate", hexadecimal(prover), by: actor) { (session) throws(FleetFault) in
      try session.run("UPDATE provers SET revoked = NULL, reason = NULL WHERE id = $1", .copying(prover.bytes))
    }
  }

  /// Lets a revoked user enrol again. Revoked tokens stay revoked.
  package func reinstate(user: BoundedText<32>, by actor: Actor) throws(AdministrationFault) {
    try change("user.reinstate", user.description, by: actor) { (session) throws(FleetFault) in
      try session.run("UPDATE users SET revoked = NULL, reason = NULL WHERE name = $1", .text(user.description))
    }
  }
}
