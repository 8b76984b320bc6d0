extension Listing {
  static let devices = Listing(
    "devices",
    ["id": .id, "public_point": .id, "label": .text, "added": .time, "blocked": .time, "generation": .number],
    page: "SELECT id, point, label, added, blocked, generation FROM devices WHERE id > $1 ORDER BY id LIMIT $2",
    one: "SELECT id, point, label, added, blocked, generation FROM devices WHERE id = $1")

  static let images = Listing(
    "images",
    [
      "digest": .id, "subject": .text, "major": .number, "minor": .number, "patch": .number, "proof_key": .id,
      "added": .time, "withdrawn": .time,
    ],
    page: """
      SELECT digest, subject, major, minor, patch, release, added, withdrawn FROM images WHERE digest > $1
      ORDER BY digest LIMIT $2
      """,
    one: """
      SELECT digest, subject, major, minor, patch, release, added, withdrawn FROM images WHERE digest = $1
      """)

  static let provers = Listing(
    "provers", ["id": .id, "first_seen": .time, "last_seen": .time, "revoked": .time, "reason": .text],
    page: """
      SELECT id, first_seen, last_seen, revoked, reason FROM provers WHERE id > $1 ORDER BY id LIMIT $2
      """,
    one: "SELECT id, first_seen, last_seen, revoked, reason FROM provers WHERE id = $1")

  static let users = Listing(
    "users", ["name": .text, "added": .time, "revoked": .time, "reason": .text], by: .text,
    page: "SELECT name, added, revoked, reason FROM users WHERE name > $1 ORDER BY name LIMIT $2",
    one: "SELECT name, added, revoked, reason FROM users WHERE name = $1")

  private static let tokenColumns: KeyValuePairs<String, Kind> = [
    "id": .id, "device": .id, "prover": .id, "subject": .text, "version": .text, "user": .text, "commands": .json,
    "maximum_uses": .number, "issued": .time, "expires": .time, "generation": .number, "signer": .id, "revoked": .time,
    "reason": .text,
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
      "id": .id, "device": .id, "user": .text, "commands": .json, "maximum_uses": .number, "created": .time,
      "creator": .text, "expires": .time, "revoked": .time, "used": .time, "prover": .id, "token": .id,
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
    "id": .id, "device": .id, "device_label": .text, "prover": .id, "code": .text, "properties": .words,
    "subject": .text, "version": .text, "user": .text, "commands": .json, "maximum_uses": .number, "created": .time,
    "status": .text, "decided": .time, "decider": .text, "reason": .text, "token": .id,
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

  static let requestsByStatus = Listing(
    "requests", requestColumns,
    page: """
      SELECT r.id, r.device, d.label, r.prover, r.code, c.properties, r.subject, r.version, r.username, r.commands,
        r.maximum_uses, r.created, r.status, r.decided, r.decider, r.reason, r.token
      FROM requests r JOIN devices d ON d.id = r.device LEFT JOIN response_codes c ON c.code = r.code
      WHERE r.status = $3 AND r.id > $1 ORDER BY r.id LIMIT $2
      """)

  static let refusals = Listing(
    "refusals",
    [
      "number": .number, "time": .time, "step": .text, "reasons": .words, "code": .text, "device": .id, "prover": .id,
      "image": .id,
    ],
    by: .descendingNumber,
    page: """
      SELECT number, moment, step, reasons, code, device, prover, image FROM refusals WHERE number < $1
      ORDER BY number DESC LIMIT $2
      """)

  static let refusalsOfCode = Listing(
    "refusals",
    [
      "number": .number, "time": .time, "step": .text, "reasons": .words, "code": .text, "device": .id, "prover": .id,
      "image": .id,
    ],
    by: .descendingNumber,
    page: """
      SELECT number, moment, step, reasons, code, device, prover, image FROM refusals WHERE number < $1 AND code = $3
      ORDER BY number DESC LIMIT $2
      """)

  static let responseCodes = Listing(
    "codes", ["code": .text, "prover": .id, "properties": .words, "first_seen": .time], by: .text,
    page: """
      SELECT code, prover, properties, first_seen FROM response_codes WHERE code > $1 ORDER BY code LIMIT $2
      """,
    one: "SELECT code, prover, properties, first_seen FROM response_codes WHERE code = $1")

  static let keys = Listing(
    "keys", ["id": .id, "added": .time, "active": .time, "retired": .time],
    page: """
      SELECT id, added, active, retired FROM keys WHERE purpose = 'issuer' AND id > $1 ORDER BY id LIMIT $2
      """,
    one: "SELECT id, added, active, retired FROM keys WHERE purpose = 'issuer' AND id = $1")

  static let operators = Listing(
    "operators", ["name": .text, "scopes": .words, "added": .time, "expires": .time, "revoked": .time], by: .text,
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
}
