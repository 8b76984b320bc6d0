import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

extension FleetSession {
  /// Runs statements, with the faults of an operator's request.
  func running<Result>(
    _ body: (FleetSession) throws(FleetFault) -> Result
  ) throws(AdministrationFault) -> Result {
    do throws(FleetFault) { return try body(self) } catch { throw .fleet(error) }
  }

  /// Raises the revision of policy and keys, so that every process reads them anew.
  ///
  /// The step is random: if this change is lost with a server and another one is made in its place, they have different revisions,
  /// and no process goes on with what it has read of the lost one.
  ///
  /// - Parameter policy: The new policy as JSON; nil to leave it.
  /// - Returns: The number of rows that it changed.
  @discardableResult
  func raiseRevision(policy: [UInt8]? = nil) throws(FleetFault) -> Int {
    try run(
      "UPDATE settings SET value = coalesce($1, value), revision = revision + $2 WHERE name = 'policy'",
      .optional(policy), .integer(Int64.random(in: 1...1 << 32)))
  }
}

extension Fleet {
  /// Registers a device with its key. Registering it again changes only the label and what else is given.
  ///
  /// - Parameters:
  ///   - device: The device's id and public key.
  ///   - label: A description for operators.
  ///   - delivery: The way in which bulletins reach it.
  ///   - signed: The descriptor as its maker signed it; needed for a new device if the policy names makers.
  /// - Throws: `conflict` if it is registered with another key, or its maker's signature is missing or wrong.
  package func register(
    _ device: DeviceDescriptor, label: BoundedText<64>?, _ delivery: DeliveryChange = DeliveryChange(),
    signed: SignedDescriptor? = nil, by actor: Actor
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      let isPermitted = try session.running { (session) throws(FleetFault) in
        // The policy stays as it is until the device is registered.
        _ = try session.row("SELECT revision FROM settings WHERE name = 'policy' FOR UPDATE")
        let makers = try self.keys(in: session).policy.deviceMakers
        if makers.isEmpty || signed?.isSignature(for: device, byOneOf: makers) == true { return true }
        return try session.row("SELECT id FROM devices WHERE id = $1", .copying(device.deviceID.bytes)) != nil
      }
      guard isPermitted else { throw .conflict(.unsignedDevice) }
      let point = try session.running { (session) throws(FleetFault) in
        try session.run(
          """
          INSERT INTO devices (id, point, label, added, generation) VALUES ($1, $2, $3, $4, 1)
          ON CONFLICT (id) DO UPDATE SET label = coalesce(excluded.label, devices.label)
          """,
          .copying(device.deviceID.bytes), .copying(device.publicPoint.bytes), .optional(label?.description),
          .unsigned(session.now))
        try session.log("device.add", hexadecimal(device.deviceID), by: actor, label?.description ?? "")
        guard let row = try session.row("SELECT point FROM devices WHERE id = $1", .copying(device.deviceID.bytes))
        else { throw .corrupt }
        return try session.decoding { () throws(SQLFault) in try row.bytes(0) }
      }
      guard point == device.publicPoint.array else { throw .conflict(.anotherKey) }
      guard delivery != DeliveryChange() else { return }
      try session.running { (session) throws(FleetFault) in
        _ = try session.set(delivery, of: device.deviceID, by: actor)
      }
    }
  }

  /// Blocks a device, which then gets no tokens, or permits them again.
  package func setBlocked(_ isBlocked: Bool, _ device: DeviceID, by actor: Actor) throws(AdministrationFault) {
    try change(isBlocked ? "device.block" : "device.unblock", hexadecimal(device), by: actor) {
      (session) throws(FleetFault) in
      isBlocked
        ? try session.run(
          "UPDATE devices SET blocked = coalesce(blocked, $2) WHERE id = $1", .copying(device.bytes),
          .unsigned(session.now))
        : try session.run("UPDATE devices SET blocked = NULL WHERE id = $1", .copying(device.bytes))
    }
  }

  /// Raises the generation of a device and returns it. Once the device sees a token of it, it refuses all older tokens.
  package func raiseGeneration(of device: DeviceID, by actor: Actor) throws(AdministrationFault) -> UInt64 {
    try changing { (session) throws(AdministrationFault) in
      let generation: UInt64? = try session.running { (session) throws(FleetFault) in
        guard
          let row = try session.row(
            "UPDATE devices SET generation = generation + 1 WHERE id = $1 RETURNING generation",
            .copying(device.bytes))
        else { return nil }
        try session.log("device.generation", hexadecimal(device), by: actor)
        return try session.decoding { () throws(SQLFault) in try row.unsigned(0) }
      }
      guard let generation else { throw .notFound }
      return generation
    }
  }

  /// Approves an executable as a build of a release. Approving it again replaces the approval.
  ///
  /// - Parameters:
  ///   - image: The digest of the executable with its name and version.
  ///   - tree: The tree digest of the executable; nil if evidence with tree digests does not count. With a manifest, it is the one that
  ///     the manifest names. It belongs to the executable with which it was named last.
  ///   - keys: The keys of its release.
  ///   - manifest: The maker's manifest, which must name the executable as what it is approved; nil if there is none.
  /// - Throws: `conflict` if the release is registered with another evidence key, the manifest names something else, or for the
  ///   subject `development`.
  package func approve(
    _ image: Digest, tree: Digest? = nil, subject: BoundedText<64>, version: AppVersion, keys: borrowing ReleaseKeys,
    manifest: ReleaseManifest? = nil, by actor: Actor
  ) throws(AdministrationFault) {
    if let manifest, manifest.app != subject || manifest.versions[image] != version {
      throw .conflict(.anotherManifest)
    }
    if let manifest, let tree, let named = manifest.trees[image], named != tree { throw .conflict(.anotherManifest) }
    let tree = manifest.map { $0.trees[image] } ?? tree
    guard subject != ApprovedImage.developmentSubject else { throw .conflict(.reservedSubject) }
    let id = keys.id
    var random = SystemRandom()
    let sealed: [UInt8]
    do throws(CryptographyFailure) {
      var both = SecretBytes(zeros: 48)
      var bytes = both.mutableBytes
      keys.proof.withBytes { for index in 0..<16 { bytes[index] = $0[index] } }
      keys.evidence.withBytes { for index in 0..<32 { bytes[16 + index] = $0[index] } }
      sealed = try serviceKey.seal(both.bytes, as: .release, id: id.bytes, random: &random)
    } catch { throw .fleet(.cryptography) }
    let evidence = keys.evidence.copy()
    try changing { (session) throws(AdministrationFault) in
      let isSame = try session.running { (session) throws(FleetFault) in
        try session.run(
          "INSERT INTO releases (id, sealed, added) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
          .copying(id.bytes), .bytes(sealed), .unsigned(session.now))
        guard let sealed = try session.sealedReleaseKeys(id).found() else { throw .corrupt }
        let known = try self.serviceKey.releaseKeys(id, sealed)
        return known.evidence.withBytes { left in evidence.withBytes { right in constantTimeEqual(left, right) } }
      }
      guard isSame else { throw .conflict(.anotherEvidenceKey) }
      try session.running { (session) throws(FleetFault) in
        try session.run(
          """
          INSERT INTO images (digest, subject, major, minor, patch, release, added)
          VALUES ($1, $2, $3, $4, $5, $6, $7)
          ON CONFLICT (digest) DO UPDATE SET subject = excluded.subject, major = excluded.major,
            minor = excluded.minor, patch = excluded.patch, release = excluded.release, withdrawn = NULL
          """,
          .copying(image.bytes), .text(subject.description), .unsigned(version.major), .unsigned(version.minor),
          .unsigned(version.patch), .copying(id.bytes), .unsigned(session.now))
        try session.run("DELETE FROM image_makers WHERE digest = $1", .copying(image.bytes))
        try session.run(
          "DELETE FROM image_trees WHERE digest = $1 OR tree = $2", .copying(image.bytes), .bytes(tree?.array ?? []))
        if let tree {
          try session.run(
            "INSERT INTO image_trees (digest, tree) VALUES ($1, $2)", .copying(image.bytes), .copying(tree.bytes))
        }
        if let manifest {
          try session.run(
            "INSERT INTO image_makers (digest, maker, maker_key) VALUES ($1, $2, $3)", .copying(image.bytes),
            .text(manifest.maker.description), .copying(manifest.key.bytes))
        }
        let maker = manifest.map { ", signed by \($0.maker)" } ?? ""
        try session.log("image.approve", hexadecimal(image), by: actor, "\(subject) \(version.text)\(maker)")
      }
    }
  }

  /// Withdraws the approval of an executable.
  package func withdraw(_ image: Digest, by actor: Actor) throws(AdministrationFault) {
    try change("image.withdraw", hexadecimal(image), by: actor) { (session) throws(FleetFault) in
      try session.run(
        "UPDATE images SET withdrawn = coalesce(withdrawn, $2) WHERE digest = $1", .copying(image.bytes),
        .unsigned(session.now))
    }
  }

  /// Replaces the policy. Images are not part of it. Apps learn of changed features from a newer configuration.
  package func setPolicy(_ policy: ServicePolicy, by actor: Actor) throws(AdministrationFault) {
    var policy = policy
    policy.images = []
    let json = policy.json.compact()
    try change("policy.set", "", by: actor) { (session) throws(FleetFault) in
      // Every other change takes this row first, and then the configuration's: two processes would wait for each other
      // otherwise. Nobody changes the policy between the comparison and the update.
      _ = try session.row("SELECT revision FROM settings WHERE name = 'policy' FOR UPDATE")
      if try self.keys(in: session).policy.features != policy.features { _ = try session.raise(.configuration) }
      return try session.raiseRevision(policy: json)
    }
  }

  /// The present policy.
  package func policy() throws(FleetFault) -> ServicePolicy {
    try read { (session) throws(FleetFault) in try self.keys(in: session).policy }
  }

  /// Makes a new key that signs measurement tokens from a time on.
  ///
  /// Until then, the key before signs, and the owner has time to make devices trust the new one.
  ///
  /// - Parameter active: The time from which the key signs, in Unix seconds.
  /// - Returns: The id of the key.
  package func rotateIssuerKey(active: UInt64, by actor: Actor) throws(AdministrationFault) -> KeyID {
    var random = SystemRandom()
    let key: SealedKey
    do throws(CryptographyFailure) { key = try Self.freshIssuerKey(serviceKey, &random) } catch {
      throw .fleet(.cryptography)
    }
    guard let id = KeyID(key.id.span) else { throw .fleet(.cryptography) }
    try change("key.rotate", hexadecimal(id), by: actor) { (session) throws(FleetFault) in
      try session.raiseRevision()
      return try session.run(
        "INSERT INTO keys (id, purpose, sealed, added, active) VALUES ($1, $2, $3, $4, $5)", .bytes(key.id),
        .text(key.purpose.rawValue), .bytes(key.sealed), .unsigned(session.now), .unsigned(active))
    }
    return id
  }

  /// The public keys that devices may have to trust: those that sign now or will sign. The newest is last.
  package func issuerKeys() throws(FleetFault) -> [(id: KeyID, point: P256Point, active: UInt64)] {
    try read { (session) throws(FleetFault) in
      try self.keys(in: session).issuers.map { ($0.id, $0.key.publicPoint, $0.active) }
    }
  }

  /// Runs one change of an existing record, with its entry in the log.
  ///
  /// - Parameter body: Returns the number of records that it changed.
  /// - Throws: `notFound` if it changed none.
  func change(
    _ action: StaticString, _ object: String, by actor: Actor, _ detail: String = "",
    _ body: (FleetSession) throws(FleetFault) -> Int
  ) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      let count = try session.running { (session) throws(FleetFault) in
        let count = try body(session)
        if count > 0 { try session.log(action, object, by: actor, detail) }
        return count
      }
      guard count > 0 else { throw .notFound }
    }
  }
}

extension Fleet {
  /// Returns the id of the device with an id or a label, as 32 hexadecimal digits.
  ///
  /// - Throws: `notFound` if there is none, or if several have the label.
  package func deviceID(named name: String) throws(AdministrationFault) -> String {
    if let id: DeviceID = fixedBytes(hexadecimal: name) { return hexadecimal(id) }
    let rows: [SQLRow]
    do throws(FleetFault) {
      rows = try read { (session) throws(FleetFault) in
        try session.rows("SELECT id FROM devices WHERE label = $1 LIMIT 2", .text(name))
      }
    } catch { throw .fleet(error) }
    guard rows.count == 1, let bytes = try? rows[0].bytes(0), let id = DeviceID(bytes.span) else { throw .notFound }
    return hexadecimal(id)
  }
}
