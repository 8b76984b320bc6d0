import HoldfastCore
import HoldfastDevice
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport

/// A device with the ledger of a real one in memory, which takes bulletins by the core's rules. It has no clock.
final class LedgerDevice {
  private let id: DeviceID
  private let tables: LedgerTables
  private let audiences: [AudienceID]
  /// The keys that its policy permits to introduce others.
  var introducers: Set<KeyID>
  /// The results of all deliveries that were not known already.
  private(set) var results: [BulletinResult] = []

  /// Creates a device that trusts some keys of the service.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - groups: Its groups.
  ///   - trusted: The keys that its owner trusts, which may introduce others.
  ///   - moment: Its time, in Unix seconds.
  init(
    _ device: DeviceDescriptor, groups: [String] = [], trusting trusted: [P256Point], at moment: UInt64 = TestFleet.now
  ) throws {
    tables = LedgerTables(database: try Database(inMemory: LedgerTables.schema))
    id = device.deviceID
    audiences = try [AudienceID(id.bytes)!] + groups.map { try Self.audience(of: $0) }
    introducers = []
    try tables.insert(LedgerState(deviceID: device.deviceID, clockFloor: moment))
    for point in trusted {
      var cryptography = OpenSSLCryptography()
      let id = try keyID(of: point, using: &cryptography)
      try tables.insertIssuer(id, .signing(point))
      introducers.insert(id)
    }
  }

  private static func audience(of group: String) throws -> AudienceID {
    var cryptography = OpenSSLCryptography()
    return try HoldfastCore.audience(ofGroup: BoundedText(group)!, using: &cryptography)
  }

  /// The keys that it trusts at its present time.
  var trusted: Set<KeyID> {
    get throws {
      let now = try tables.state().clockFloor
      return Set(try tables.issuers().map(\.keyID).filter { try tables.trusts($0, at: now) })
    }
  }

  /// The time from which a key is no longer trusted, in Unix seconds; nil if there is none.
  func end(of key: KeyID) throws -> UInt64? { try tables.terms(of: key).until }

  /// Delivers everything that a courier fetches, several times, as several couriers do.
  func visit(_ test: TestFleet, times: Int = 3) throws {
    for _ in 0..<times {
      var have: UInt64 = 0
      while true {
        let bulletins = try test.fleet.bulletins(for: id, above: have)
        guard let last = bulletins.last else { break }
        for bulletin in bulletins { try take(bulletin) }
        have = last.stamp.number
      }
    }
  }

  /// Delivers a bulletin that is not sealed.
  @discardableResult
  func take(_ issued: IssuedBulletin) throws -> BulletinResult {
    let result = try judged(issued)
    if result != .known { results.append(result) }
    return result
  }

  private func judged(_ issued: IssuedBulletin) throws -> BulletinResult {
    let bulletin = try Bulletin(issued.bytes.span)
    var state = try tables.state()
    guard try tables.trusts(bulletin.issuer, at: state.clockFloor),
      case .signing(let point)? =
        try tables.issuer(bulletin.issuer)
    else { return .refused }
    var cryptography = OpenSSLCryptography()
    let verified = try bulletin.verified(by: point, using: &cryptography)
    let terms = BulletinTerms(
      latestIssue: .max, mayIntroduce: introducers.contains(bulletin.issuer), realClock: nil)
    let (tables, audiences) = (tables, audiences)
    return try tables.database.transaction(mapping: { $0 }, isKept: { $0 == .taken }) {
      () throws(DatabaseError) -> BulletinResult in
      let result = try tables.take(verified, for: audiences, limits: LedgerLimits(), on: terms, state: &state)
      if result == .taken { try tables.save(state) }
      return result
    }
  }

  /// Whether a token is in the list of revoked ones.
  func lists(_ token: TokenID) throws -> Bool {
    try tables.database.oneUnsigned("SELECT 1 FROM revoked WHERE jti = ?", .copying(token.bytes)) != nil
  }
}
