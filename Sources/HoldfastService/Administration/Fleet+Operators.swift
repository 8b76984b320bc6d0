import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The rights of an operator's token.
package enum OperatorScope: String, Sendable, CaseIterable {
  /// To see records.
  case read
  /// To hand in audit logs.
  case report
  /// To decide about requests, and to invite; includes `report`.
  case approve
  /// To revoke and to block.
  case revoke
  /// Everything else: devices, images, keys, policy and operators.
  case admin
}

/// An operator whose token was checked.
package struct Operator: Sendable, Equatable {
  /// The name in the log of changes.
  package let name: String
  /// The permissions.
  package let scopes: Set<OperatorScope>

  /// The operator as the one who makes a change.
  package var actor: Actor { Actor(name) }

  /// An operator who may do everything: somebody with the service's database and key.
  package static func local(_ name: String) -> Operator {
    Operator(name: name, scopes: Set(OperatorScope.allCases))
  }
}

extension Fleet {
  /// The text before an operator's token, by which scanners for leaked secrets find it.
  private static var prefix: String { "holdfast_operator_" }

  /// Makes an operator's token: 32 random bytes as 64 hexadecimal digits after a prefix.
  ///
  /// - Parameters:
  ///   - name: The operator's name, which no other operator had.
  ///   - scopes: The permissions.
  ///   - seconds: The lifetime of the token; nil for no end.
  /// - Returns: The token, which is not stored and cannot be shown again.
  /// - Throws: `conflict` if there is or was an operator of that name.
  package func addOperator(
    _ name: BoundedText<32>, scopes: Set<OperatorScope>, for seconds: UInt64?, by actor: Actor
  ) throws(AdministrationFault) -> String {
    var random = SystemRandom()
    let secret: FixedBytes<32>
    do throws(RandomFailure) { secret = try random.fixedBytes() } catch { throw .fleet(.cryptography) }
    let token = Self.prefix + hexadecimal(secret)
    let digest: Digest
    do throws(FleetFault) { digest = try Self.digest(of: token) } catch { throw .fleet(error) }
    let words = OperatorScope.allCases.filter(scopes.contains).map(\.rawValue).joined(separator: " ")
    try changing { (session) throws(AdministrationFault) in
      let count = try session.running { (session) throws(FleetFault) in
        let count = try session.run(
          """
          INSERT INTO operators (name, digest, scopes, added, expires) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (name) DO NOTHING
          """,
          .text(name.description), .copying(digest.bytes), .text(words), .unsigned(session.now),
          .optional(seconds.map { session.now + $0 }))
        if count == 1 { try session.log("operator.add", name.description, by: actor, words) }
        return count
      }
      guard count == 1 else { throw .conflict(.existingOperator) }
    }
    return token
  }

  /// Revokes an operator's token.
  package func removeOperator(_ name: BoundedText<32>, by actor: Actor) throws(AdministrationFault) {
    try change("operator.remove", name.description, by: actor) { (session) throws(FleetFault) in
      try session.run(
        "UPDATE operators SET revoked = coalesce(revoked, $2) WHERE name = $1", .text(name.description),
        .unsigned(session.now))
    }
  }

  /// Returns the operator with a token; nil if there is none, or the token was revoked or has expired.
  ///
  /// Timing: the token is hashed before it is looked up, and has 256 random bits.
  package func authenticate(_ token: String) throws(FleetFault) -> Operator? {
    guard token.utf8.count == Self.prefix.utf8.count + 64 else { return nil }
    let digest = try Self.digest(of: token)
    return try read { (session) throws(FleetFault) in
      guard
        let row = try session.row(
          """
          SELECT name, scopes FROM operators
          WHERE digest = $1 AND revoked IS NULL AND (expires IS NULL OR expires > $2)
          """,
          .copying(digest.bytes), .unsigned(session.now))
      else { return nil }
      return try session.caller(row)
    }
  }

  private static func digest(of token: String) throws(FleetFault) -> Digest {
    try digest(of: token, domain: "holdfast/1 operator")
  }

  /// Returns SHA-256 of a domain and a secret of 256 random bits, from which the secret cannot be found.
  static func digest(of secret: String, domain: StaticString) throws(FleetFault) -> Digest {
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var hash = cryptography.sha256()
      hash.append(domain: domain)
      hash.append(Array(secret.utf8).span)
      return try hash.finish()
    } catch { throw .cryptography }
  }
}

extension FleetSession {
  /// Reads an operator from name and scopes.
  func caller(_ row: SQLRow) throws(FleetFault) -> Operator {
    let (name, words) = try decoding { () throws(SQLFault) in (try row.text(0), try row.text(1)) }
    var scopes = Set(words.split(separator: " ").compactMap { OperatorScope(rawValue: String($0)) })
    if scopes.contains(.approve) { scopes.insert(.report) }
    return Operator(name: name, scopes: scopes)
  }
}
