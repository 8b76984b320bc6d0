import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// A session of the console: it stands for an operator's token, which the browser does not keep.
///
/// It is in the database, so that every instance knows it, and one that was ended counts nowhere any more.
package struct OperatorSession: Sendable {
  /// The operator, as its token was at this request.
  package let caller: Operator
  /// The text that every form of the session carries. Another site cannot read it, and cannot send such a form.
  package let formToken: String

  /// Returns whether a form has the session's text, in constant time.
  package func accepts(formToken other: String) -> Bool {
    constantTimeEqual(Array(formToken.utf8).span, Array(other.utf8).span)
  }
}

extension Fleet {
  /// Begins a session of the operator with a token.
  ///
  /// - Parameters:
  ///   - token: The operator's token.
  ///   - seconds: The lifetime of the session. It never outlives the token.
  /// - Returns: The session's secret for its cookie, 64 hexadecimal digits, of which only the digest is stored; nil if the token
  ///   does not count.
  package func beginSession(token: String, for seconds: UInt64) throws(FleetFault) -> String? {
    guard let caller = try authenticate(token) else { return nil }
    var random = SystemRandom()
    let bytes: FixedBytes<32>
    do throws(RandomFailure) { bytes = try random.fixedBytes() } catch { throw .cryptography }
    let secret = hexadecimal(bytes)
    let digest = try Self.digest(of: secret, domain: "holdfast/1 session")
    try transaction { (session) throws(FleetFault) in
      try session.run("DELETE FROM sessions WHERE expires <= $1", .unsigned(session.now))
      try session.run(
        "INSERT INTO sessions (digest, operator, expires) VALUES ($1, $2, $3)", .copying(digest.bytes),
        .text(caller.name), .unsigned(session.now + seconds))
      try session.log("session.begin", caller.name, by: caller.actor)
    }
    return secret
  }

  /// Returns the session with a secret; nil if there is none, it has ended, or its operator's token does not count any more.
  ///
  /// Timing: the secret is hashed before it is looked up, and has 256 random bits.
  package func session(_ secret: String) throws(FleetFault) -> OperatorSession? {
    guard secret.utf8.count == 64 else { return nil }
    let digest = try Self.digest(of: secret, domain: "holdfast/1 session")
    let caller = try read { (session) throws(FleetFault) -> Operator? in
      guard
        let row = try session.row(
          """
          SELECT o.name, o.scopes FROM sessions s JOIN operators o ON o.name = s.operator
          WHERE s.digest = $1 AND s.expires > $2 AND o.revoked IS NULL AND (o.expires IS NULL OR o.expires > $2)
          """,
          .copying(digest.bytes), .unsigned(session.now))
      else { return nil }
      return try session.caller(row)
    }
    guard let caller else { return nil }
    return OperatorSession(
      caller: caller, formToken: hexadecimal(try Self.digest(of: secret, domain: "holdfast/1 form")))
  }

  /// Ends the session with a secret, if there is one.
  package func endSession(_ secret: String) throws(FleetFault) {
    let digest = try Self.digest(of: secret, domain: "holdfast/1 session")
    _ = try transaction { (session) throws(FleetFault) in
      try session.run("DELETE FROM sessions WHERE digest = $1", .copying(digest.bytes))
    }
  }
}
