extension Listing {
  static let devices = Listing(
    "devices",
    [
      "id": .id(16), "public_point": .id(65), "label": .optional(.text), "added": .time, "blocked": .optional(.time),
      "generation": .number, "groups": .texts, "revocation_capacity": .number,
    ],
    page: """
      SELECT d.id, d.point, d.label, d.added, d.blocked, d.generation, coalesce(g.names, '[]'), coalesce(g.capacity, 100000)
      FROM devices d LEFT JOIN device_groups g ON g.device = d.id
      WHERE d.id > $1 AND NOT EXISTS (SELECT 1 FROM audit_logs l WHERE l.device = d.id AND l.received >= $3)
        AND NOT EXISTS (SELECT 1 FROM audit_chains c WHERE c.device = d.id AND c.received >= $3)
      ORDER BY d.id LIMIT $2
      """,
    one: """
      SELECT d.id, d.point, d.label, d.added, d.blocked, d.generation, coalesce(g.names, '[]'), coalesce(g.capacity, 100000)
      FROM devices d LEFT JOIN device_groups g ON g.device = d.id WHERE d.id = $1
      """)

  static let images = Listing(
    "images",
    [
      "digest": .id(32), "subject": .text, "major": .number, "minor": .number, "patch": .number, "proof_key": .id(8),
      "added": .time, "withdrawn": .optional(.time), "maker": .optional(.text), "maker_key": .optional(.id(8)),
      "tree_digest": .optional(.id(32)),
    ],
    page: """
      SELECT i.digest, i.subject, i.major, i.minor, i.patch, i.release, i.added, i.withdrawn, m.maker, m.maker_key, t.tree
      FROM images i LEFT JOIN image_makers m ON m.digest = i.digest LEFT JOIN image_trees t ON t.digest = i.digest
      WHERE i.digest > $1 ORDER BY i.digest LIMIT $2
      """,
    one: """
      SELECT i.digest, i.subject, i.major, i.minor, i.patch, i.release, i.added, i.withdrawn, m.maker, m.maker_key, t.tree
      FROM images i LEFT JOIN image_makers m ON m.digest = i.digest LEFT JOIN image_trees t ON t.digest = i.digest
      WHERE i.digest = $1
      """)

  static let provers = Listing(
    "provers",
    ["id": .id(16), "first_seen": .time, "last_seen": .time, "revoked": .optional(.time), "reason": .optional(.text)],
    page: """
      SELECT id, first_seen, last_seen, revoked, reason FROM provers WHERE id > $1 ORDER BY id LIMIT $2
      """,
    one: "SELECT id, first_seen, last_seen, revoked, reason FROM provers WHERE id = $1")

  static let users = Listing(
    "users", ["name": .text, "added": .time, "revoked": .optional(.time), "reason": .optional(.text)], by: .text,
    page: "SELECT name, added, revoked, reason FROM users WHERE name > $1 ORDER BY name LIMIT $2",
    one: "SELECT name, added, revoked, reason FROM users WHERE name = $1")

  private static let tokenColumns: KeyValuePairs<String, Kind> = [
    "id": .id(16), "device": .id(16), "prover": .id(16), "subject": .text, "version": .text, "user": .optional(.text),
    "commands": .optional(.commands),
    "maximum_uses": .optional(.number), "issued": .time, "expires": .time, "generation": .number, "signer": .id(8),
    "revoked": .optional(.time),
    "reason": .optional(.text),
  ]

  static let tokens = Listing(
    "tokens", tokenColumns,
    page: """
      SELECT id, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation, signer,
        revoked, reason
      FROM tokens WHERE id > $1 ORDER BY id LIMIT $2
      """,
    one: """
      SELECT id, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation, signer,
        revoked, reason
      FROM tokens WHERE id = $1
      """)

  static let tokensOfDevice = Listing(
    "tokens", tokenColumns,
    page: """
      SELECT id, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation, signer,
        revoked, reason
      FROM tokens WHERE device = $3 AND id > $1 ORDER BY id LIMIT $2
      """)

  static let tokensOfProver = Listing(
    "tokens", tokenColumns,
    page: """
      SELECT id, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation, signer,
        revoked, reason
      FROM tokens WHERE prover = $3 AND id > $1 ORDER BY id LIMIT $2
      """)

  static let tokensOfUser = Listing(
    "tokens", tokenColumns,
    page: """
      SELECT id, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation, signer,
        revoked, reason
      FROM tokens WHERE username = $3 AND id > $1 ORDER BY id LIMIT $2
      """)

  static let invitations = Listing(
    "invitations",
    [
      "id": .id(16), "device": .id(16), "user": .optional(.text), "commands": .optional(.commands),
      "maximum_uses": .optional(.number), "created": .time,
      "creator": .text, "expires": .time, "revoked": .optional(.time), "used": .optional(.time),
      "prover": .optional(.id(16)), "token": .optional(.id(16)),
    ],
    page: """
      SELECT id, device, username, commands, maximum_uses, created, creator, expires, revoked, used, prover, token
      FROM invitations WHERE id > $1 ORDER BY id LIMIT $2
      """,
    one: """
      SELECT id, device, username, commands, maximum_uses, created, creator, expires, revoked, used, prover, token
      FROM invitations WHERE id = $1
      """)

  private static let requestColumns: KeyValuePairs<String, Kind> = [
    "id": .id(16), "device": .id(16), "device_label": .optional(.text), "prover": .id(16), "code": .text,
    "properties": .optional(.words),
    "subject": .text, "version": .text, "user": .optional(.text), "commands": .optional(.commands),
    "maximum_uses": .optional(.number), "created": .time,
    "status": .text, "decided": .optional(.time), "decider": .optional(.text), "reason": .optional(.text),
    "token": .optional(.id(16)),
  ]

  static let requests = Listing(
    "requests", requestColumns,
    page: """
      SELECT r.id, r.device, d.label, r.prover, r.code, c.properties, r.subject, r.version, r.username, r.commands,
        r.maximum_uses, r.created, r.status, r.decided, r.decider, r.reason, r.token
      FROM requests r JOIN devices d ON d.id = r.device LEFT JOIN response_codes c ON c.code = r.code
      WHERE r.id > $1 ORDER BY r.id LIMIT $2
      """,
    one: """
      SELECT r.id, r.device, d.label, r.prover, r.code, c.properties, r.subject, r.version, r.username, r.commands,
        r.maximum_uses, r.created, r.status, r.decided, r.decider, r.reason, r.token
      FROM requests r JOIN devices d ON d.id = r.device LEFT JOIN response_codes c ON c.code = r.code
      WHERE r.id = $1
      """)

  /// The requests in the state `$3`, the oldest first.
  static let requestsByStatus = Listing(
    "requests", requestColumns,
    page: """
      SELECT r.id, r.device, d.label, r.prover, r.code, c.properties, r.subject, r.version, r.username, r.commands,
        r.maximum_uses, r.created, r.status, r.decided, r.decider, r.reason, r.token
      FROM requests r JOIN devices d ON d.id = r.device LEFT JOIN response_codes c ON c.code = r.code
      WHERE r.status = $3 AND (r.created, r.id) > (coalesce((SELECT created FROM requests WHERE id = $1), -1), $1)
      ORDER BY r.created, r.id LIMIT $2
      """)

  private static let refusalColumns: KeyValuePairs<String, Kind> = [
    "number": .number, "time": .time, "step": .text, "reasons": .words, "code": .optional(.text),
    "device": .optional(.id(16)), "prover": .optional(.id(16)), "image": .optional(.id(32)),
  ]

  static let refusals = Listing(
    "refusals", refusalColumns, by: .descendingNumber,
    page: """
      SELECT number, moment, step, reasons, code, device, prover, image FROM refusals WHERE number < $1
      ORDER BY number DESC LIMIT $2
      """)

  static let refusalsOfCode = Listing(
    "refusals", refusalColumns, by: .descendingNumber,
    page: """
      SELECT number, moment, step, reasons, code, device, prover, image FROM refusals WHERE number < $1 AND code = $3
      ORDER BY number DESC LIMIT $2
      """)

  static let responseCodes = Listing(
    "codes",
    [
      "code": .text, "prover": .id(16), "properties": .words, "first_seen": .time, "app_properties": .optional(.texts),
      "system_id": .optional(.text), "system_version": .optional(.text), "user_property": .optional(.text),
      "stated": .optional(.time),
    ], by: .text,
    page: """
      SELECT c.code, c.prover, c.properties, c.first_seen, s.app_properties, s.system_id, s.system_version,
        s.user_property, s.seen
      FROM response_codes c LEFT JOIN code_statements s ON s.code = c.code WHERE c.code > $1 ORDER BY c.code LIMIT $2
      """,
    one: """
      SELECT c.code, c.prover, c.properties, c.first_seen, s.app_properties, s.system_id, s.system_version,
        s.user_property, s.seen
      FROM response_codes c LEFT JOIN code_statements s ON s.code = c.code WHERE c.code = $1
      """)

  static let domains = Listing(
    "domains",
    [
      "name": .text, "audience": .text, "algorithm": .text, "lifetime": .number, "protected": .flag,
      "measurement": .flag, "added": .time,
    ], by: .text,
    page: """
      SELECT name, audience, algorithm, lifetime, protected, measurement, added FROM domains WHERE name > $1
      ORDER BY name LIMIT $2
      """,
    one: "SELECT name, audience, algorithm, lifetime, protected, measurement, added FROM domains WHERE name = $1")

  static let pins = Listing(
    "pins", ["id": .text, "domain": .text, "pin": .text, "added": .time], by: .text,
    page: "SELECT id, domain, pin, added FROM pins WHERE id > $1 ORDER BY id LIMIT $2",
    one: "SELECT id, domain, pin, added FROM pins WHERE id = $1")

  /// The names of the secure strings, never their values.
  static let strings = Listing(
    "strings", ["name": .text, "changed": .time], by: .text,
    page: "SELECT name, changed FROM strings WHERE name > $1 ORDER BY name LIMIT $2",
    one: "SELECT name, changed FROM strings WHERE name = $1")

  static let keys = Listing(
    "keys", ["id": .id(8), "added": .time, "active": .time, "retired": .optional(.time)],
    page: """
      SELECT id, added, active, retired FROM keys WHERE purpose = 'issuer' AND id > $1 ORDER BY id LIMIT $2
      """,
    one: "SELECT id, added, active, retired FROM keys WHERE purpose = 'issuer' AND id = $1")

  static let operators = Listing(
    "operators",
    ["name": .text, "scopes": .words, "added": .time, "expires": .optional(.time), "revoked": .optional(.time)],
    by: .text,
    page: """
      SELECT name, scopes, added, expires, revoked FROM operators WHERE name > $1 ORDER BY name LIMIT $2
      """,
    one: "SELECT name, scopes, added, expires, revoked FROM operators WHERE name = $1")

  static let changes = Listing(
    "changes",
    ["number": .number, "time": .time, "actor": .text, "action": .text, "object": .text, "detail": .text],
    by: .descendingNumber,
    page: """
      SELECT number, moment, actor, action, object, detail FROM changes WHERE number < $1 ORDER BY number DESC LIMIT $2
      """)

  /// The state of the audit logs of which pages came.
  static let auditLogs = Listing(
    "audit-logs",
    [
      "device": .id(16), "complete_through": .number, "entries": .number, "missing": .number,
      "first_missing": .optional(.number),
      "dropped": .number, "acknowledged": .number, "forked": .optional(.time), "pages_taken": .number,
      "pages_known": .number,
      "pages_refused": .number, "last_page": .optional(.time),
    ],
    page: """
      SELECT l.device, l.through, l.count,
        l.count - (SELECT count(*) FROM audits a WHERE a.device = l.device AND a.sequence <= l.count),
        CASE WHEN l.through >= l.count OR l.cut >= l.count THEN NULL WHEN l.through < l.cut THEN l.cut + 1 ELSE l.through + 1 END,
        l.cut, l.acknowledged, l.forked, l.taken, l.known, l.refused, l.received
      FROM audit_logs l WHERE l.device > $1 ORDER BY l.device LIMIT $2
      """)

  private static let auditColumns: KeyValuePairs<String, Kind> = [
    "number": .number, "device": .id(16), "sequence": .number, "time": .time, "event": .text, "user": .text,
    "details": .details,
  ]

  /// The received audit logs of all devices, filtered by event `$3` and user `$4`, where these are not empty, from the time `$5` on and
  /// before the time `$6`.
  static let audits = Listing(
    "audits", auditColumns, by: .descendingNumber,
    page: """
      SELECT number, device, sequence, moment, event, username, details FROM audits
      WHERE number < $1 AND ($3 = '' OR event = $3) AND ($4 = '' OR username = $4) AND moment >= $5 AND moment < $6
      ORDER BY number DESC LIMIT $2
      """)

  /// The received audit log of the device `$7`.
  static let auditsOfDevice = Listing(
    "audits", auditColumns, by: .descendingNumber,
    page: """
      SELECT number, device, sequence, moment, event, username, details FROM audits
      WHERE number < $1 AND ($3 = '' OR event = $3) AND ($4 = '' OR username = $4) AND moment >= $5 AND moment < $6 AND device = $7
      ORDER BY number DESC LIMIT $2
      """)
}
