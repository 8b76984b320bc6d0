import HoldfastCore
import HoldfastStorage

import HoldfastDevice

/// All that a device must not forget: every row of its ledger, and where its lock stands.
struct DeviceContents: Equatable {
  var tables: [String: [String]] = [:]
  /// The events of the audit log.
  var auditEvents: [AuditEvent]
  /// The outcome of the request with each token's highest number, if it is known. A power cut may lose it.
  var outcomes: [String: String] = [:]
  var policy: PolicyReading
  var lock: LockState

  init(_ device: TestDevice) throws {
    lock = device.lock.current
    policy = try device.folder.policy(of: device.ledger).read()
    auditEvents = try device.ledger.auditEntries(limit: 1000).map(\.event)
    tables = try device.ledger.read { (tables) throws(DatabaseError) in
      let database = tables.database
      return [
        "state": try database.all(
          """
          SELECT hex(device_id) || ' ' || clock_floor || ' ' || forgotten_through || ' ' || boot_count || ' ' || kept_count || ' ' || request_count || ' ' || audit_count || ' ' || hex(audit_head)
            || ' ' || quote(policy_seen) FROM state
          """
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "issuers": try database.all(
          """
          SELECT hex(kid) || ' ' || algorithm || ' ' || hex(key) || quote(trusted_from) || quote(trusted_until)
            || quote(label) || quote(introduced_by) FROM issuers ORDER BY kid
          """
        ) {
          (row) throws(DatabaseError) in try row.text(0)
        },
        "runs": try database.all("SELECT quote(host) || ' ' || disorderly FROM runs") {
          (row) throws(DatabaseError) in try row.text(0)
        },
        "generations": try database.all("SELECT hex(kid) || ' ' || floor FROM generations ORDER BY kid") {
          (row) throws(DatabaseError) in try row.text(0)
        },
        "bulletins": try database.all(
          "SELECT hex(kid) || hex(audience) || ' ' || number FROM bulletins ORDER BY kid, audience"
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "revoked": try database.all("SELECT hex(kid) || hex(jti) || ' ' || until FROM revoked ORDER BY kid, jti") {
          (row) throws(DatabaseError) in try row.text(0)
        },
        "minimum_versions": try database.all(
          "SELECT hex(kid) || subject || major || '.' || minor || '.' || patch FROM minimum_versions ORDER BY kid, subject"
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "ended_keys": try database.all("SELECT hex(kid) FROM ended_keys ORDER BY kid") {
          (row) throws(DatabaseError) in try row.text(0)
        },
        "uses": try database.all(
          "SELECT hex(kid) || ' ' || hex(jti) || ' ' || expires || ' ' || count FROM uses ORDER BY kid, jti"
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "nonces": try database.all(
          "SELECT hex(kid) || hex(jti) || hex(nonce) || ' ' || expires FROM nonces ORDER BY kid, jti, nonce"
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "requests": try database.all(
          """
          SELECT hex(kid) || hex(jti) || ' ' || expires || ' ' || highest || ' ' || below || ' ' || hex(digest)
          FROM requests ORDER BY kid, jti
          """
        ) { (row) throws(DatabaseError) in try row.text(0) },
        "audit": try database.all(
          "SELECT sequence || ' ' || hex(entry) || ' ' || hex(hash) FROM audit ORDER BY sequence"
        ) { (row) throws(DatabaseError) in try row.text(0) },
      ]
    }
    let rows = try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.database.all(
        "SELECT hex(kid) || hex(jti) || ' ' || highest, outcome FROM requests WHERE outcome IS NOT NULL"
      ) { (row) throws(DatabaseError) in (try row.text(0), String(try row.unsigned(1))) }
    }
    outcomes = Dictionary(uniqueKeysWithValues: rows)
  }

  /// Whether a power cut in the step from here to `next` may leave `found`: the step was recorded or not, and what follows
  /// a record, the lock, was done only if it is there.
  func mayBecome(_ found: DeviceContents, before next: DeviceContents) -> Bool {
    guard found.tables == tables || found.tables == next.tables else { return false }
    guard found.outcomes.allSatisfy({ outcomes[$0.key] == $0.value || next.outcomes[$0.key] == $0.value }) else {
      return false
    }
    guard found.policy == policy || found.policy == next.policy else { return false }
    return found.lock == lock || found.lock == next.lock && found.tables == next.tables
  }

  /// Whether this is `other`, or follows from it by one transaction more: one record, or totals, of which there are several.
  /// Where the lock stands is not looked at.
  func forgetsNothing(of other: DeviceContents) -> Bool {
    guard tables != other.tables else { return true }
    let (audit, known) = (tables["audit"] ?? [], other.tables["audit"] ?? [])
    let added = auditEvents.dropFirst(known.count)
    guard audit.starts(with: known), added.count == 1 || !added.isEmpty && added.allSatisfy(\.isTotal) else {
      return false
    }
    guard Set(other.tables["nonces"] ?? []).isSubset(of: tables["nonces"] ?? []) else { return false }
    let uses = useCounts
    return other.useCounts.allSatisfy { uses[$0.key, default: 0] >= $0.value }
  }

  /// How often each token was used.
  private var useCounts: [String: Int] {
    let rows = (tables["uses"] ?? []).map { $0.split(separator: " ") }
    return Dictionary(uniqueKeysWithValues: rows.map { ("\($0[0]) \($0[1])", Int($0[3]) ?? 0) })
  }

  /// The difference between this and `other`.
  func differences(from other: DeviceContents) -> String {
    var names = tables.keys.sorted().filter { tables[$0] != other.tables[$0] }
    if lock != other.lock { names.append("lock") }
    if policy != other.policy { names.append("policy") }
    return names.joined(separator: ", ")
  }
}

extension AuditEvent {
  /// Whether it counts what was not recorded at once: several such entries are written in one transaction.
  fileprivate var isTotal: Bool {
    switch self {
    case .unproved, .denied: true
    default: false
    }
  }
}
