import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The public half of a key that signs tokens for apps.
package struct AppKey: Sendable, Equatable {
  /// The id, the `kid` of its tokens.
  package let id: KeyID
  package let point: P256Point
  /// The time from which the key signs, in Unix seconds.
  package let active: UInt64
  /// Whether the key signs the configuration for apps.
  package let isForConfiguration: Bool
}

extension Fleet {
  /// Makes another key that signs tokens for apps from a time on. The first key goes on to sign the configuration, because apps are
  /// built with its public half.
  ///
  /// - Returns: The id of the new key.
  package func rotateAppKey(active: UInt64, by actor: Actor) throws(AdministrationFault) -> KeyID {
    var random = SystemRandom()
    let key: SealedKey
    do throws(CryptographyFailure) { key = try Self.freshAppTokenKey(serviceKey, &random, isFirst: false) } catch {
      throw .fleet(.cryptography)
    }
    guard let id = KeyID(key.id.span) else { throw .fleet(.cryptography) }
    try change("app-key.rotate", hexadecimal(id), by: actor) { (session) throws(FleetFault) in
      try session.raiseRevision()
      return try session.run(
        "INSERT INTO keys (id, purpose, sealed, added, active) VALUES ($1, $2, $3, $4, $5)", .bytes(key.id),
        .text(key.purpose.rawValue), .bytes(key.sealed), .unsigned(session.now), .unsigned(max(active, session.now)))
    }
    return id
  }

  /// The public keys with which a backend may have to verify tokens for apps: the present one, those to come, those of tokens that
  /// have not expired, and that of the configuration. The newest is last.
  package func appTokenKeys() throws(FleetFault) -> [AppKey] {
    try read { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      let point = keys.configurationKey.publicPoint
      return keys.appKeys.enumerated().filter { index, key in
        guard key.key.publicPoint != point, index + 1 < keys.appKeys.count else { return true }
        return session.now < keys.appKeys[index + 1].active + APIDomain.lifetimes.upperBound
      }.map { _, key in
        AppKey(
          id: key.id, point: key.key.publicPoint, active: key.active,
          isForConfiguration: key.key.publicPoint == point)
      }
    }
  }
}
