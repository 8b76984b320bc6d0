import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer

/// A part of a device's audit log, as a request brings it.
struct ReceivedAudits {
  /// The device whose log it is.
  let device: DeviceID
  /// The chain before the first entry.
  let base: AuditChain
  /// The encoded entries.
  let entries: [[UInt8]]
}

extension Fleet {
  /// Stores a part of a device's audit log. What is known already is compared and not stored again, so that the same part, and
  /// parts that overlap, can be sent any number of times.
  ///
  /// The first part begins the log where it begins. Each later part must lead on from an entry that is known, by the hash
  /// chain: a device, or somebody with its file, cannot take back what the service has seen.
  ///
  /// - Returns: The number of entries that were new.
  /// - Throws: `notFound` if the device is not registered; `conflict` with `gapInLog`, `forkedLog` or `brokenLog`.
  func receive(_ part: ReceivedAudits, by actor: Actor) throws(AdministrationFault) -> UInt64 {
    do throws(AdministrationFault) { return try store(part, by: actor) } catch {
      // Somebody changed the log or the device: this must not be forgotten because the entries are refused.
      if error == .conflict(.forkedLog) {
        try change("audit.fork", hexadecimal(part.device), by: actor, "after entry \(part.base.count)") { _ in 1 }
      }
      throw error
    }
  }

  private func store(_ part: ReceivedAudits, by actor: Actor) throws(AdministrationFault) -> UInt64 {
    let links = try Self.links(of: part)
    return try changing { (session) throws(AdministrationFault) in
      let known = try session.running { (session) throws(FleetFault) in try session.lockedAuditCount(of: part.device) }
      guard let known else { throw .notFound }
      if let count = known.count { guard part.base.count <= count else { throw .conflict(.gapInLog) } }
      let new = try session.running { (session) throws(FleetFault) in
        try session.store(links, of: part, above: known.count ?? 0, by: actor)
      }
      guard let new else { throw .conflict(.forkedLog) }
      return UInt64(new)
    }
  }

  /// Stores the entries of a file, a limited number in each transaction.
  ///
  /// - Returns: The number of entries that were new.
  /// - Throws: As for a part; `conflict` with `brokenLog` if the entries do not lead to the head in the file. Then nothing is stored.
  package func receive(
    _ archive: AuditArchive, inPartsOf count: Int, by actor: Actor
  ) throws(AdministrationFault) -> UInt64 {
    var base = archive.base
    var parts: [ReceivedAudits] = []
    for start in stride(from: 0, to: archive.entries.count, by: count) {
      let entries = Array(archive.entries[start..<min(start + count, archive.entries.count)])
      let part = ReceivedAudits(device: archive.deviceID, base: base, entries: entries)
      parts.append(part)
      guard let last = try Self.links(of: part).last else { continue }
      base = AuditChain(count: last.entry.sequence, head: last.head)
    }
    guard base == archive.end else { throw .conflict(.brokenLog) }
    var stored: UInt64 = 0
    for part in parts { stored += try receive(part, by: actor) }
    return stored
  }

  /// Decodes the entries, and follows the chain over them.
  private static func links(of part: ReceivedAudits) throws(AdministrationFault) -> [AuditLink] {
    do throws(AuditLinkFault) { return try AuditLink.links(of: part.entries, after: part.base) } catch {
      throw error == .broken ? .conflict(.brokenLog) : .fleet(.cryptography)
    }
  }
}

extension FleetSession {
  /// Locks a device's record, and returns the number of its last known entry; nil if the device is not registered.
  fileprivate func lockedAuditCount(of device: DeviceID) throws(FleetFault) -> (count: UInt64?, Void)? {
    guard try row("SELECT id FROM devices WHERE id = $1 FOR UPDATE", .copying(device.bytes)) != nil else { return nil }
    guard let row = try row("SELECT count FROM audit_chains WHERE device = $1", .copying(device.bytes)) else {
      return (nil, ())
    }
    return (try decoding { () throws(SQLFault) in try row.unsigned(0) }, ())
  }

  /// Stores the entries of a part that are behind the known ones, and returns their number; nil if the part contradicts what is known.
  fileprivate func store(
    _ links: [AuditLink], of part: ReceivedAudits, above count: UInt64, by actor: Actor
  ) throws(FleetFault) -> Int? {
    let end = part.base.count + UInt64(links.count)
    let known = try auditHeads(of: part.device, from: part.base.count, through: end)
    guard agrees(links, after: part.base, with: known) else { return nil }
    let new = try storeNew(links.filter { $0.entry.sequence > count }, after: part.base, of: part.device, known)
    guard let first = new.first, let last = new.last else { return 0 }
    try run(
      """
      INSERT INTO audit_chains (device, count, received) VALUES ($1, $2, $3)
      ON CONFLICT (device) DO UPDATE SET count = excluded.count, received = excluded.received
      """,
      .copying(part.device.bytes), .unsigned(max(end, count)), .unsigned(now))
    try advanceAuditLog(of: part.device)
    try log(
      "audit.receive", hexadecimal(part.device), by: actor,
      "entries \(first.entry.sequence) to \(last.entry.sequence)")
    return new.count
  }

  /// Stores an entry that is not known yet.
  func store(_ link: AuditLink, of device: DeviceID) throws(FleetFault) {
    let details = link.entry.event.details
    let user = details.first { $0.0 == "user" }
    var name = ""
    if case .text(let text)? = user?.1 { name = text }
    let json = JSONValue.object(details.map { ($0.0, .string($0.1.line)) })
    try run(
      """
      INSERT INTO audits (device, sequence, moment, event, username, details, entry, head)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      """,
      .copying(device.bytes), .unsigned(link.entry.sequence), .unsigned(link.entry.time), .text(link.entry.event.name),
      .text(name), .text(String(decoding: json.compact(), as: UTF8.self)), .bytes(link.bytes),
      .copying(link.head.bytes))
  }
}
