import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastStorage

/// The answer to pages of an audit log.
package struct AuditPagesAnswer: Sendable, Equatable {
  /// The receipt for the entries before which none is missing, at most 256 bytes; nil if there is none.
  package var receipt: [UInt8]?
  /// The number of the first entry that the service lacks; nil if it lacks none, as far as is known.
  package var missing: UInt64?
  /// The number of pages that could not be opened, or that contradict themselves or earlier ones.
  package var refusedCount = 0

  /// Creates an answer.
  ///
  /// - Parameters:
  ///   - receipt: The receipt.
  ///   - missing: The number of the first entry that the service lacks.
  ///   - refusedCount: The number of pages that were refused.
  package init(receipt: [UInt8]? = nil, missing: UInt64? = nil, refusedCount: Int = 0) {
    (self.receipt, self.missing, self.refusedCount) = (receipt, missing, refusedCount)
  }
}

/// The online service as the home of devices' audit logs.
///
/// Source: docs/couriers.md, The audit log goes home.
extension Fleet {
  /// The largest number of pages in one request.
  package static let auditPageLimit = 4
  /// The number of issuer keys, the active one first, for which a page is tried.
  private static let homeLimit = 4

  /// The public key for agreement, which devices need to seal pages.
  package func agreementKey() throws(FleetFault) -> P256Point {
    try read { (session) throws(FleetFault) in try self.keys(in: session).agreement.publicPoint }
  }

  /// Takes pages of a device's audit log, which anyone may bring, in any order. Each page proves by itself that the device made it.
  ///
  /// - Parameters:
  ///   - pages: Sealed pages.
  ///   - device: The device that made them. For one that is not registered, the answer is that for pages that nobody can open.
  package func receive(pages: [[UInt8]], of device: DeviceID) throws(FleetFault) -> AuditPagesAnswer {
    var answer = AuditPagesAnswer(refusedCount: pages.count)
    let possible = pages.prefix(Self.auditPageLimit).filter { AuditPage.isSealedByteCount($0.count) }
    let (point, keys, now) = try read { (session) throws(FleetFault) in
      (try session.devicePoint(device), try self.keys(in: session), session.now)
    }
    guard let point else { return answer }
    var opened: [OpenedPage] = []
    for page in possible {
      if let page = try open(page, of: device, point, keys, at: now) { opened.append(page) }
    }
    let unopenedCount = pages.count - opened.count
    // The newest page comes last, and names the home that the device has now.
    guard let home = opened.last?.home else {
      let due = refusedPages.add(unopenedCount, of: device, at: now)
      if due > 0 { try transaction { (session) throws(FleetFault) in try session.count(refused: due, of: device) } }
      return answer
    }
    let refused = UInt64(unopenedCount) + refusedPages.take(of: device, at: now)
    let stored = try transaction { (session) throws(FleetFault) in
      let isSafe = try self.receiptCondition.state(in: session).isSigning
      return try session.store(opened, refused: refused, of: device, isSafe: isSafe)
    }
    answer.refusedCount = unopenedCount + stored.contradictionCount
    answer.missing = stored.log.missing
    answer.receipt = try receipt(for: stored, of: device, by: home)
    return answer
  }

  private func open(
    _ sealed: [UInt8], of device: DeviceID, _ point: P256Point, _ keys: FleetKeys, at now: UInt64
  ) throws(FleetFault) -> OpenedPage? {
    // A device may still name the key before, or the next one already.
    let active = keys.issuers.lastIndex { $0.active <= now }
    let others = keys.issuers.indices.reversed().filter { $0 != active }
    for index in ((active.map { [$0] } ?? []) + others).prefix(Self.homeLimit) {
      let home = keys.issuers[index]
      let secret: PageSecrets.Shared
      do throws(CryptographyFailure) {
        secret = try pageSecrets.secret(of: home.key.publicPoint, with: device, point, keys.agreement)
      } catch { throw .cryptography }
      guard let page = secret.open(sealed) else { continue }
      guard let links = try? page.links() else { return nil }
      return OpenedPage(page: page, links: links, home: home)
    }
    return nil
  }
}

/// The outcome of storing pages.
struct StoredPages {
  /// The state of the log after the commit.
  let log: AuditLogState
  /// The number of pages that contradict earlier ones.
  let contradictionCount: Int
  /// Whether the commit was one that may be acknowledged.
  let isSafe: Bool
}

/// A page that the device made, with the home that it names.
struct OpenedPage {
  let page: AuditPage
  let links: [AuditLink]
  let home: FleetKeys.Issuer
}

extension FleetSession {
  /// Returns the public key of a device; nil if the device is not registered.
  func devicePoint(_ device: DeviceID) throws(FleetFault) -> P256Point? {
    guard let row = try row("SELECT point FROM devices WHERE id = $1", .copying(device.bytes)) else { return nil }
    let bytes = try decoding { () throws(SQLFault) in try row.bytes(0) }
    guard let point = P256Point(bytes.span) else { throw .corrupt }
    return point
  }

  /// Counts pages that could not be opened.
  fileprivate func count(refused: UInt64, of device: DeviceID) throws(FleetFault) {
    try begin(of: device)
    try run(
      "UPDATE audit_logs SET refused = refused + $2 WHERE device = $1", .copying(device.bytes), .unsigned(refused))
  }

  private func begin(of device: DeviceID) throws(FleetFault) {
    try run(
      """
      INSERT INTO audit_logs (device, through, cut, count, acknowledged, taken, known, refused)
      VALUES ($1, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (device) DO NOTHING
      """, .copying(device.bytes))
  }

  /// Stores pages and counts them. Every request with a page writes, so that the commit before a receipt waits for a standby, also for
  /// what was stored earlier. Only a page with something new is a sign of the device: anyone can bring an old one again.
  fileprivate func store(
    _ pages: [OpenedPage], refused: UInt64, of device: DeviceID, isSafe: Bool
  ) throws(FleetFault) -> StoredPages {
    let key = Value.copying(device.bytes)
    try run("SELECT id FROM devices WHERE id = $1 FOR UPDATE", key)
    try begin(of: device)
    var counts = (taken: 0, known: 0, contradictions: 0)
    for page in pages {
      switch try store(page, of: device) {
      case nil: counts.contradictions += 1
      case 0: counts.known += 1
      default: counts.taken += 1
      }
    }
    try run(
      """
      UPDATE audit_logs SET taken = taken + $2, known = known + $3, refused = refused + $4,
        received = CASE WHEN $2 > 0 THEN $5 ELSE received END WHERE device = $1
      """, key, .unsigned(UInt64(counts.taken)), .unsigned(UInt64(counts.known)),
      .unsigned(UInt64(counts.contradictions) + refused), .unsigned(now))
    guard let log = try auditLog(of: device) else { throw .corrupt }
    return StoredPages(log: log, contradictionCount: counts.contradictions, isSafe: isSafe)
  }

  /// Stores a page, and returns the number of new entries; nil for a page that contradicts what is known: the fork is recorded.
  private func store(_ opened: OpenedPage, of device: DeviceID) throws(FleetFault) -> Int? {
    let key = Value.copying(device.bytes)
    let page = opened.page
    var known = try auditHeads(of: device, from: page.base.count, through: page.base.count + UInt64(opened.links.count))
    known.merge(try auditHeads(of: device, from: page.end.count, through: page.end.count)) { old, _ in old }
    guard agrees(opened.links, after: page.base, with: known), agrees([], after: page.end, with: known) else {
      let isFirst =
        try run("UPDATE audit_logs SET forked = $2 WHERE device = $1 AND forked IS NULL", key, .unsigned(now)) > 0
      // Anyone can bring the same page again.
      if isFirst { try log("audit.fork", hexadecimal(device), by: .service, "page after entry \(page.base.count)") }
      return nil
    }
    let new = try storeNew(opened.links, after: page.base, of: device, known)
    if known[page.end.count] == nil { try note(page.end, of: device) }
    try run(
      """
      UPDATE audit_logs SET count = CASE WHEN count < $2 THEN $2 ELSE count END,
        cut = CASE WHEN cut < $3 THEN $3 ELSE cut END WHERE device = $1
      """, key, .unsigned(page.end.count), .unsigned(page.cut))
    try advanceAuditLog(of: device)
    if let first = new.first, let last = new.last {
      let through = try auditLog(of: device)?.through ?? 0
      let gap = first.entry.sequence > through + 1 ? ", behind a gap after entry \(through)" : ""
      try log(
        "audit.page", hexadecimal(device), by: .service,
        "entries \(first.entry.sequence) to \(last.entry.sequence)\(gap)")
    }
    return new.count
  }
}
