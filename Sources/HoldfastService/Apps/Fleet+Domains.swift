import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

extension Fleet {
  /// Adds an API domain, or changes the one of that name.
  ///
  /// - Throws: `conflict` for a name that is none, and beyond 64 domains.
  package func add(_ domain: APIDomain, by actor: Actor) throws(AdministrationFault) {
    guard APIDomain.isName(domain.name) else { throw .conflict(.invalidDomain) }
    try changing { (session) throws(AdministrationFault) in
      let count = try session.running { (session) throws(FleetFault) in
        // Changes of the configuration run one after the other, so the count below is right.
        try session.raiseConfiguration()
        try session.run(
          """
          INSERT INTO domains (name, audience, algorithm, lifetime, protected, measurement, added)
          VALUES ($1, $2, $3, $4, $5, $6, $7)
          ON CONFLICT (name) DO UPDATE SET audience = excluded.audience, algorithm = excluded.algorithm,
            lifetime = excluded.lifetime, protected = excluded.protected, measurement = excluded.measurement
          """,
          .text(domain.name), .text(domain.audience.description), .text(domain.algorithm.rawValue),
          .unsigned(domain.lifetime), .unsigned(domain.isProtected ? 1 : 0), .unsigned(domain.hasMeasurement ? 1 : 0),
          .unsigned(session.now))
        try session.log("domain.add", domain.name, by: actor, domain.detail)
        return try session.number("SELECT count(*) FROM domains")
      }
      guard count <= APIDomain.countLimit else { throw .conflict(.tooMany) }
    }
  }

  /// Removes an API domain with its pins. Apps get no more tokens for it.
  package func remove(domain name: String, by actor: Actor) throws(AdministrationFault) {
    try change("domain.remove", name, by: actor) { (session) throws(FleetFault) in
      try session.raiseConfiguration()
      try session.run("DELETE FROM pins WHERE domain = $1", .text(name))
      return try session.run("DELETE FROM domains WHERE name = $1", .text(name))
    }
  }

  /// Returns the key with which a domain's tokens are signed, 32 bytes in base64, for its backend. The log of changes says who has
  /// seen it.
  ///
  /// - Parameters:
  ///   - name: The domain.
  ///   - isNext: Whether the key is the one after the next rotation, so that the backend knows it in time.
  /// - Throws: `notFound`; `conflict` for a domain whose tokens are signed with ES256.
  package func secret(
    ofDomain name: String, next isNext: Bool = false, by actor: Actor
  ) throws(AdministrationFault) -> (epoch: UInt64, key: String) {
    try changing { (session) throws(AdministrationFault) in
      let keys = try session.running { (session) throws(FleetFault) in try self.keys(in: session) }
      guard let domain = keys.apps.domains[name] else { throw .notFound }
      guard domain.algorithm == .hs256 else { throw .conflict(.notShared) }
      return try session.running { (session) throws(FleetFault) in
        let epoch = keys.apps.domainEpoch(name) + (isNext ? 1 : 0)
        try session.log("domain.secret", name, by: actor, "epoch \(epoch)")
        return (epoch, try keys.domainKey(domain.name, epoch: epoch).withBytes { paddedBase64($0) })
      }
    }
  }

  /// Replaces the key with which a domain's HS256 tokens are signed, at once.
  ///
  /// - Returns: The number in the new key, the `kid` of its tokens.
  /// - Throws: `notFound`; `conflict` for a domain whose tokens are signed with ES256.
  package func rotate(domain name: String, by actor: Actor) throws(AdministrationFault) -> UInt64 {
    try changing { (session) throws(AdministrationFault) in
      let keys = try session.running { (session) throws(FleetFault) in try self.keys(in: session) }
      guard let domain = keys.apps.domains[name] else { throw .notFound }
      guard domain.algorithm == .hs256 else { throw .conflict(.notShared) }
      return try session.running { (session) throws(FleetFault) in
        try session.raiseRevision()
        let epoch = try session.number(
          """
          INSERT INTO domain_secrets (name, epoch, changed) VALUES ($1, 2, $2)
          ON CONFLICT (name) DO UPDATE SET epoch = domain_secrets.epoch + 1, changed = excluded.changed
          RETURNING epoch
          """,
          .text(name), .unsigned(session.now))
        try session.log("domain.rotate", name, by: actor, "epoch \(epoch)")
        return epoch
      }
    }
  }

  /// Adds a pin to a domain, or to every domain.
  ///
  /// - Throws: `notFound` if there is no such domain; `conflict` beyond 16 pins of a domain.
  package func add(_ pin: DomainPin, by actor: Actor) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      let (domains, count) = try session.running { (session) throws(FleetFault) in
        try session.raiseConfiguration()
        try session.run(
          "INSERT INTO pins (id, domain, pin, added) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
          .text(pin.key), .text(pin.domain), .text(pin.pin), .unsigned(session.now))
        try session.log("pin.add", pin.domain, by: actor, pin.pin)
        return (
          try session.number("SELECT count(*) FROM domains WHERE name = $1", .text(pin.domain)),
          try session.number("SELECT count(*) FROM pins WHERE domain = $1", .text(pin.domain))
        )
      }
      guard domains == 1 || pin.domain == DomainPin.everyDomain else { throw .notFound }
      guard count <= DomainPin.countLimit else { throw .conflict(.tooMany) }
    }
  }

  /// Removes a pin.
  package func remove(_ pin: DomainPin, by actor: Actor) throws(AdministrationFault) {
    try change("pin.remove", pin.domain, by: actor, pin.pin) { (session) throws(FleetFault) in
      try session.raiseConfiguration()
      return try session.run("DELETE FROM pins WHERE id = $1", .text(pin.key))
    }
  }

  /// Forces the present pins: an app that hears of it connects to no domain before it has this configuration or a newer one.
  ///
  /// - Returns: The revision of the configuration from which pins are forced.
  package func forcePins(by actor: Actor) throws(AdministrationFault) -> UInt64 {
    try changing { (session) throws(AdministrationFault) in
      try session.running { (session) throws(FleetFault) in
        let revision = try session.raiseConfiguration()
        try session.set(.forcedPins, revision)
        try session.log("pin.force", "", by: actor, "revision \(revision)")
        return revision
      }
    }
  }
}

extension FleetSession {
  /// Returns the number that a query of one row and one column gives.
  func number(_ sql: StaticString, _ values: Value...) throws(FleetFault) -> UInt64 {
    guard let row = try rows(sql, values: values).first else { throw .corrupt }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) }
  }
}
