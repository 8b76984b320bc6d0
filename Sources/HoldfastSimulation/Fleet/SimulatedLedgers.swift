import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import HoldfastStorage

/// The ledgers of all devices, of which one is in the tables of a real ledger at a time.
///
/// The tables, their SQL and the decisions are those of a device, in an SQLite database in memory. A database for each of 10^5 devices
/// would need too much memory, so between visits the contents of each device's ledger are kept outside; equal contents are kept once.
final class SimulatedLedgers {
  /// The contents of a ledger that bulletins change.
  struct Contents: Hashable {
    /// The clock floor, in Unix seconds.
    var clockFloor: UInt64
    /// The number of the group's newest bulletin; 0 if there is none.
    var number: UInt64
    /// The revoked tokens, ascending by their ids.
    var revoked: [Entry]
  }

  /// A revoked token.
  struct Entry: Hashable {
    let token: TokenID
    /// The time from which it no longer matters, in Unix seconds.
    let until: UInt64
  }

  private let tables: LedgerTables
  private let limits = LedgerLimits()
  private let issuer: KeyID
  private let group: AudienceID
  /// The different contents, and the index of each.
  private var contents: [Contents]
  private var indexes: [Contents: Int32]
  /// The index of the contents of each device's ledger.
  private var ledgers: [Int32]
  /// The index of the contents in the tables.
  private var loaded: Int32 = 0
  /// The device that is visited.
  private(set) var device = 0

  /// Creates ledgers that trust one issuer, and have had no bulletins.
  ///
  /// - Parameters:
  ///   - deviceCount: the number of devices.
  ///   - issuer: the key of the issuer.
  ///   - issuerID: the id of `issuer`.
  ///   - group: the group of all devices.
  init(deviceCount: Int, issuer: P256Point, issuerID: KeyID, group: AudienceID) throws(DatabaseError) {
    tables = LedgerTables(database: try Database(inMemory: LedgerTables.schema))
    (self.issuer, self.group) = (issuerID, group)
    let empty = Contents(clockFloor: SimulatedService.beginning, number: 0, revoked: [])
    (contents, indexes) = ([empty], [empty: 0])
    ledgers = [Int32](repeating: 0, count: deviceCount)
    try tables.insert(LedgerState(deviceID: DeviceID(), clockFloor: empty.clockFloor))
    try tables.insertIssuer(issuerID, .signing(issuer))
  }

  /// Returns the id of a device.
  static func deviceID(_ device: Int) -> DeviceID { DeviceID(number: device + 1) }

  /// Returns the contents of a device's ledger.
  func contents(of device: Int) -> Contents { contents[Int(ledgers[device])] }

  /// Puts the contents of a device's ledger into the tables.
  func visit(_ device: Int) throws(DatabaseError) {
    self.device = device
    guard loaded != ledgers[device] else { return }
    let next = contents[Int(ledgers[device])]
    try tables.database.transaction { () throws(DatabaseError) in try fill(with: next) }
    loaded = ledgers[device]
  }

  private func fill(with next: Contents) throws(DatabaseError) {
    try tables.database.run("DELETE FROM bulletins")
    try tables.database.run("DELETE FROM revoked")
    try tables.database.run("DELETE FROM audit")
    var state = try tables.state()
    (state.clockFloor, state.bulletinCount, state.audit) = (next.clockFloor, next.number > 0 ? 1 : 0, AuditChain())
    try tables.save(state)
    let issuer = Value.copying(issuer.bytes)
    if next.number > 0 {
      try tables.database.run(
        "INSERT INTO bulletins VALUES (?, ?, ?)", issuer, .copying(group.bytes), .unsigned(next.number))
    }
    for entry in next.revoked {
      try tables.database.run(
        "INSERT INTO revoked VALUES (?, ?, ?)", issuer, .copying(entry.token.bytes), .unsigned(entry.until))
    }
  }

  /// Keeps the contents of the tables as those of the visited device.
  private func keep() throws(DatabaseError) {
    let state = try tables.state()
    let list = try tables.bulletins(of: issuer, for: [group])
    let revoked = try tables.database.all("SELECT jti, until FROM revoked ORDER BY jti") {
      (row) throws(DatabaseError) in try Entry(row)
    }
    let kept = Contents(clockFloor: state.clockFloor, number: list.number(for: group) ?? 0, revoked: revoked)
    if let index = indexes[kept] {
      loaded = index
    } else {
      loaded = Int32(contents.count)
      contents.append(kept)
      indexes[kept] = loaded
    }
    ledgers[device] = loaded
  }

  private var audiences: [AudienceID] {
    [AudienceID(Self.deviceID(device).bytes), group].compactMap(\.self)
  }

  /// Returns the list of a device, whether or not it is the visited one.
  func list(of device: Int) -> BulletinList {
    let own = AudienceID(Self.deviceID(device).bytes)
    return BulletinList(
      (own.map { [BulletinList.Row(audience: $0, number: 0)] } ?? [])
        + [BulletinList.Row(audience: group, number: contents(of: device).number)])
  }
}

extension SimulatedLedgers.Entry {
  init(_ row: borrowing Row) throws(DatabaseError) {
    let bytes = try row.bytes(0)
    guard let token = TokenID(bytes.span) else { throw .corrupt }
    (self.token, until) = (token, try row.unsigned(1))
  }
}

/// The store of the visited device. Only bulletins reach it: rounds are not run.
extension SimulatedLedgers: DeviceStore {
  func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    do throws(DatabaseError) {
      guard try tables.trusts(keyID, at: tables.state().clockFloor) else { return nil }
      return try tables.issuer(keyID)
    } catch { return nil }
  }

  func clockFloor() throws(DeviceFault) -> UInt64 {
    do throws(DatabaseError) { return try tables.state().clockFloor } catch { throw .store }
  }

  func bulletins(of issuer: KeyID) throws(DeviceFault) -> BulletinList? {
    do throws(DatabaseError) { return try tables.bulletins(of: issuer, for: audiences) } catch { throw .store }
  }

  func take(_ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms) throws(DeviceFault) -> BulletinResult {
    do throws(DatabaseError) {
      let result = try taken(bulletin, on: terms)
      if result == .taken { try keep() }
      return result
    } catch { throw .store }
  }

  private func taken(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DatabaseError) -> BulletinResult {
    try tables.database.transaction(mapping: { $0 }, isKept: { $0 == .taken }) {
      () throws(DatabaseError) -> BulletinResult in
      var state = try tables.state()
      let result = try tables.take(bulletin, for: audiences, limits: limits, on: terms, state: &state)
      if result == .taken { try tables.save(state) }
      return result
    }
  }

  func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool { false }
  func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {}
  func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide) throws(DeviceFault) {
    throw .store
  }
  func keepOutcome(_ outcome: Status, of request: RequestIdentity) {}
  func user(named name: BoundedText<32>) -> UserRecord? { nil }
  func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? { nil }
  func oneUseCode(at index: Int) -> OneUseCodeRecord? { nil }
  func activate(_ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser) -> Bool {
    false
  }
  func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) -> Bool { false }
  func countUnauthenticated(_ status: Status) {}
}
