import HoldfastDatabase
import HoldfastStorage

extension BackupTable {
  /// The tables of the mail that couriers carry: bulletins, and pages of audit logs. New tables are added at the end, because a backup of an
  /// earlier version has them in this order.
  static let mail: [BackupTable] = [
    BackupTable(
      "device_groups", since: 7, key: [0], start: [.bytes([])],
      page: """
        SELECT device, names, capacity FROM device_groups
        WHERE device > $1 ORDER BY device LIMIT $2
        """,
      insert: """
        INSERT INTO device_groups (device, names, capacity)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "group_devices", since: 7, key: [0, 1], start: [.bytes([]), .integer(.min)],
      page: """
        SELECT device, position, audience FROM group_devices
        WHERE (device, position) > ($1, $2) ORDER BY device, position LIMIT $3
        """,
      insert: """
        INSERT INTO group_devices (device, position, audience)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "bulletin_audiences", since: 7, key: [0], start: [.bytes([])],
      page: """
        SELECT audience, signed FROM bulletin_audiences
        WHERE audience > $1 ORDER BY audience LIMIT $2
        """,
      insert: """
        INSERT INTO bulletin_audiences (audience, signed)
        VALUES ($1, $2)
        """),
    BackupTable(
      "bulletins", since: 7, key: [0, 1], start: [.bytes([]), .integer(.min)],
      page: """
        SELECT audience, number, issuer, predecessor, issued, entries, generation, bytes FROM bulletins
        WHERE (audience, number) > ($1, $2) ORDER BY audience, number LIMIT $3
        """,
      insert: """
        INSERT INTO bulletins (audience, number, issuer, predecessor, issued, entries, generation, bytes)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """),
    BackupTable(
      "bulletin_entries", since: 7, key: [0, 1], start: [.bytes([]), .bytes([])],
      page: """
        SELECT audience, token, issuer, number, until FROM bulletin_entries
        WHERE (audience, token) > ($1, $2) ORDER BY audience, token LIMIT $3
        """,
      insert: """
        INSERT INTO bulletin_entries (audience, token, issuer, number, until)
        VALUES ($1, $2, $3, $4, $5)
        """),
    BackupTable(
      "audit_heads", since: 8, key: [0, 1], start: [.bytes([]), .integer(.min)],
      page: """
        SELECT device, sequence, head FROM audit_heads
        WHERE (device, sequence) > ($1, $2) ORDER BY device, sequence LIMIT $3
        """,
      insert: """
        INSERT INTO audit_heads (device, sequence, head)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "audit_logs", since: 8, key: [0], start: [.bytes([])],
      page: """
        SELECT device, through, cut, count, acknowledged, forked, taken, known, refused, received FROM audit_logs
        WHERE device > $1 ORDER BY device LIMIT $2
        """,
      insert: """
        INSERT INTO audit_logs (device, through, cut, count, acknowledged, forked, taken, known, refused, received)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        """),
    BackupTable(
      "first_revocations", since: 8, key: [0, 1], start: [.bytes([]), .bytes([])],
      page: """
        SELECT token, audience, number FROM first_revocations
        WHERE (token, audience) > ($1, $2) ORDER BY token, audience LIMIT $3
        """,
      insert: """
        INSERT INTO first_revocations (token, audience, number)
        VALUES ($1, $2, $3)
        """),
    BackupTable(
      "minimum_versions", since: 9, key: [0, 1], start: [.bytes([]), .text("")],
      page: """
        SELECT audience, subject, major, minor, patch, raised FROM minimum_versions
        WHERE (audience, subject) > ($1, $2) ORDER BY audience, subject LIMIT $3
        """,
      insert: """
        INSERT INTO minimum_versions (audience, subject, major, minor, patch, raised)
        VALUES ($1, $2, $3, $4, $5, $6)
        """),
    BackupTable(
      "user_orders", since: 9, key: [0, 1], start: [.bytes([]), .text("")],
      page: """
        SELECT device, username, until, ordered FROM user_orders
        WHERE (device, username) > ($1, $2) ORDER BY device, username LIMIT $3
        """,
      insert: """
        INSERT INTO user_orders (device, username, until, ordered)
        VALUES ($1, $2, $3, $4)
        """),
    BackupTable(
      "bulletin_versions", since: 9, key: [0, 1, 2, 3],
      start: [.bytes([]), .bytes([]), .integer(.min), .text("")],
      page: """
        SELECT audience, issuer, number, subject, major, minor, patch FROM bulletin_versions
        WHERE (audience, issuer, number, subject) > ($1, $2, $3, $4) ORDER BY audience, issuer, number, subject LIMIT $5
        """,
      insert: """
        INSERT INTO bulletin_versions (audience, issuer, number, subject, major, minor, patch)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """),
    BackupTable(
      "bulletin_users", since: 9, key: [0, 1, 2, 3], start: [.bytes([]), .bytes([]), .integer(.min), .text("")],
      page: """
        SELECT audience, issuer, number, username, until, ordered FROM bulletin_users
        WHERE (audience, issuer, number, username) > ($1, $2, $3, $4) ORDER BY audience, issuer, number, username LIMIT $5
        """,
      insert: """
        INSERT INTO bulletin_users (audience, issuer, number, username, until, ordered)
        VALUES ($1, $2, $3, $4, $5, $6)
        """),
    BackupTable(
      "key_orders", since: 10, key: [0, 1], start: [.bytes([]), .bytes([])],
      page: """
        SELECT audience, kid, introducer, point, begins, until, introduced, ended FROM key_orders
        WHERE (audience, kid) > ($1, $2) ORDER BY audience, kid LIMIT $3
        """,
      insert: """
        INSERT INTO key_orders (audience, kid, introducer, point, begins, until, introduced, ended)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """),
    BackupTable(
      "bulletin_keys", since: 10, key: [0, 1, 2, 3],
      start: [.bytes([]), .bytes([]), .integer(.min), .bytes([])],
      page: """
        SELECT audience, issuer, number, kid, point, begins, until, ends FROM bulletin_keys
        WHERE (audience, issuer, number, kid) > ($1, $2, $3, $4) ORDER BY audience, issuer, number, kid LIMIT $5
        """,
      insert: """
        INSERT INTO bulletin_keys (audience, issuer, number, kid, point, begins, until, ends)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """),
  ]
}
