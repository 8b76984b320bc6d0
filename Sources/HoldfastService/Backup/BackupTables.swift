import HoldfastDatabase
import HoldfastStorage

/// A table of the service as a backup has it.
package struct BackupTable: Sendable {
  package let name: String
  /// The first version of the schema that has the table.
  let since: Int
  /// The columns by which the table is read page by page.
  let key: [Int]
  /// The key before the first row.
  let start: [Value]
  /// Reads a page: the first parameters are the key of the row before, the last one is the number of rows.
  let page: StaticString
  /// Writes a row.
  package let insert: StaticString
  /// Changes a row so that a service that lost what came after its backup does nothing that it should not do any more.
  let precaution: @Sendable (_ row: inout [Value], _ now: UInt64) -> Void

  init(
    _ name: String, since: Int = 1, key: [Int], start: [Value], page: StaticString, insert: StaticString,
    precaution: @escaping @Sendable (_ row: inout [Value], _ now: UInt64) -> Void = { _, _ in }
  ) {
    (self.name, self.since, self.key, self.start) = (name, since, key, start)
    (self.page, self.insert, self.precaution) = (page, insert, precaution)
  }
}

extension BackupTable {
  /// All tables, each after those that it refers to.
  package static let all = registry + mail

  private static let registry: [BackupTable] = [
    BackupTable(
      "settings", key: [0], start: [.text("")],
      page: """
        SELECT name, value, revision FROM settings
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO settings (name, value, revision)
        VALUES ($1, $2, $3)
        """
    ) { row, _ in
      guard case .text(let name) = row[0], let setting = AppSetting(rawValue: name) else { return }
      switch setting {
      // The key may have been replaced or removed after the backup.
      case .developmentKey: row[1] = .bytes([])
      // Raised for every service: see `cutOff`.
      case .configuration, .messageEpoch, .forcedPins: break
      // Their number is the owner's: docs/online-service.md says that it has to be raised.
      case .postureRules: break
      }
    },
    BackupTable(
      "keys", key: [0], start: [.bytes([])],
      page: """
        SELECT id, purpose, sealed, added, active, retired FROM keys
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO keys (id, purpose, sealed, added, active, retired)
        VALUES ($1, $2, $3, $4, $5, $6)
        """),
    BackupTable(
      "releases", key: [0], start: [.bytes([])],
      page: """
        SELECT id, sealed, added FROM releases
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO releases (id, sealed, added)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "images", key: [0], start: [.bytes([])],
      page: """
        SELECT digest, subject, major, minor, patch, release, added, withdrawn FROM images
        WHERE digest > $1 ORDER BY digest LIMIT $2
        """,
      insert: """
        INSERT INTO images (digest, subject, major, minor, patch, release, added, withdrawn)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """),
    BackupTable(
      "devices", key: [0], start: [.bytes([])],
      page: """
        SELECT id, point, label, added, blocked, generation FROM devices
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO devices (id, point, label, added, blocked, generation)
        VALUES ($1, $2, $3, $4, $5, $6)
        """
    ) { row, _ in
      // A generation that was raised after the backup is lower than this one.
      if case .integer(let generation) = row[5] { row[5] = .integer(generation + 1 << 20) }
    },
    BackupTable(
      "provers", key: [0], start: [.bytes([])],
      page: """
        SELECT id, first_seen, last_seen, revoked, reason FROM provers
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO provers (id, first_seen, last_seen, revoked, reason)
        VALUES ($1, $2, $3, $4, $5)
        """),
    BackupTable(
      "users", key: [0], start: [.text("")],
      page: """
        SELECT name, added, revoked, reason FROM users
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO users (name, added, revoked, reason)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "appraisals", key: [0], start: [.bytes([])],
      page: """
        SELECT salt, evidence, device, first_seen FROM appraisals
        WHERE salt > $1 ORDER BY salt LIMIT $2
        """,
      insert: """
        INSERT INTO appraisals (salt, evidence, device, first_seen)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "invitations", key: [0], start: [.bytes([])],
      page: """
        SELECT id, digest, device, username, commands, maximum_uses, created, creator, expires, revoked, used, prover,
          baseline, token FROM invitations
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO invitations (id, digest, device, username, commands, maximum_uses, created, creator, expires, revoked, used,
          prover, baseline, token)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        """
    ) { row, now in
      if row[13] == .null, row[9] == .null { row[9] = .unsigned(now) }
    },
    BackupTable(
      "requests", key: [0], start: [.bytes([])],
      page: """
        SELECT id, baseline, device, prover, code, subject, version, username, commands, created, status, decided,
          decider, reason, maximum_uses, token FROM requests
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO requests (id, baseline, device, prover, code, subject, version, username, commands, created,
          status, decided, decider, reason, maximum_uses, token)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """
    ) { row, _ in
      if row[10] == .text("waiting") || row[10] == .text("approved") { row[10] = .text("expired") }
    },
    BackupTable(
      "tokens", key: [0], start: [.bytes([])],
      page: """
        SELECT id, baseline, device, prover, subject, version, username, commands, maximum_uses, issued, expires,
          generation, signer, format, bytes, claims, revoked, reason FROM tokens
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO tokens (id, baseline, device, prover, subject, version, username, commands, maximum_uses, issued, expires,
          generation, signer, format, bytes, claims, revoked, reason)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
        """),
    BackupTable(
      "refusals", key: [0], start: [.integer(.min)],
      page: """
        SELECT number, moment, step, reasons, code, device, prover, image FROM refusals
        WHERE number > $1 ORDER BY number LIMIT $2
        """,
      insert: """
        INSERT INTO refusals (number, moment, step, reasons, code, device, prover, image)
        OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """),
    BackupTable(
      "counters", key: [0, 1, 2], start: [.integer(.min), .text(""), .integer(.min)],
      page: """
        SELECT hour, name, shard, count FROM counters
        WHERE (hour, name, shard) > ($1, $2, $3) ORDER BY hour, name, shard LIMIT $4
        """,
      insert: """
        INSERT INTO counters (hour, name, shard, count)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "response_codes", key: [0], start: [.text("")],
      page: """
        SELECT code, prover, properties, first_seen FROM response_codes
        WHERE code > $1 ORDER BY code LIMIT $2
        """,
      insert: """
        INSERT INTO response_codes (code, prover, properties, first_seen)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "operators", key: [0], start: [.text("")],
      page: """
        SELECT name, digest, scopes, added, expires, revoked FROM operators
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO operators (name, digest, scopes, added, expires, revoked)
        VALUES ($1, $2, $3, $4, $5, $6)
        """
    ) { row, now in
      if row[5] == .null { row[5] = .unsigned(now) }
    },
    BackupTable(
      "changes", key: [0], start: [.integer(.min)],
      page: """
        SELECT number, moment, actor, action, object, detail FROM changes
        WHERE number > $1 ORDER BY number LIMIT $2
        """,
      insert: """
        INSERT INTO changes (number, moment, actor, action, object, detail)
        OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6)
        """),
    BackupTable(
      "audit_chains", since: 2, key: [0], start: [.bytes([])],
      page: """
        SELECT device, count, received FROM audit_chains
        WHERE device > $1 ORDER BY device LIMIT $2
        """,
      insert: """
        INSERT INTO audit_chains (device, count, received)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "audits", since: 2, key: [0], start: [.integer(.min)],
      page: """
        SELECT number, device, sequence, moment, event, username, details, entry, head FROM audits
        WHERE number > $1 ORDER BY number LIMIT $2
        """,
      insert: """
        INSERT INTO audits (number, device, sequence, moment, event, username, details, entry, head)
        OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """),
    BackupTable(
      "domains", since: 4, key: [0], start: [.text("")],
      page: """
        SELECT name, audience, algorithm, lifetime, protected, measurement, added FROM domains
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO domains (name, audience, algorithm, lifetime, protected, measurement, added)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """),
    BackupTable(
      "pins", since: 4, key: [0], start: [.text("")],
      page: """
        SELECT id, domain, pin, added FROM pins
        WHERE id > $1 ORDER BY id LIMIT $2
        """,
      insert: """
        INSERT INTO pins (id, domain, pin, added)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "strings", since: 4, key: [0], start: [.text("")],
      page: """
        SELECT name, sealed, changed FROM strings
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO strings (name, sealed, changed)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "code_statements", since: 4, key: [0], start: [.text("")],
      page: """
        SELECT code, app_properties, system_id, system_version, user_property, seen FROM code_statements
        WHERE code > $1 ORDER BY code LIMIT $2
        """,
      insert: """
        INSERT INTO code_statements (code, app_properties, system_id, system_version, user_property, seen)
        VALUES ($1, $2, $3, $4, $5, $6)
        """),
    BackupTable(
      "domain_secrets", since: 5, key: [0], start: [.text("")],
      page: """
        SELECT name, epoch, changed FROM domain_secrets
        WHERE name > $1 ORDER BY name LIMIT $2
        """,
      insert: """
        INSERT INTO domain_secrets (name, epoch, changed)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "image_makers", since: 5, key: [0], start: [.bytes([])],
      page: """
        SELECT digest, maker, maker_key FROM image_makers
        WHERE digest > $1 ORDER BY digest LIMIT $2
        """,
      insert: """
        INSERT INTO image_makers (digest, maker, maker_key)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "image_trees", since: 6, key: [0], start: [.bytes([])],
      page: """
        SELECT digest, tree FROM image_trees
        WHERE digest > $1 ORDER BY digest LIMIT $2
        """,
      insert: """
        INSERT INTO image_trees (digest, tree)
        VALUES ($1, $2)
        """),
  ]

  /// The tables whose rows PostgreSQL numbers, with the statement after which it goes on from the last number.
  static let numbered: [(since: Int, continuing: StaticString)] = [
    (1, "SELECT setval(pg_get_serial_sequence('refusals', 'number'), max(number)) FROM refusals"),
    (1, "SELECT setval(pg_get_serial_sequence('changes', 'number'), max(number)) FROM changes"),
    (2, "SELECT setval(pg_get_serial_sequence('audits', 'number'), max(number)) FROM audits"),
  ]
}
