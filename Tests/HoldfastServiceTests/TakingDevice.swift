import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import TestSupport
import Testing

/// The claims of a bulletin.
struct SaidClaims {
  let issuer: KeyID
  let issuedAt: UInt64
  let generation: UInt64?
  /// Whether only the device can read the bulletin.
  let isSealed: Bool
  var revoked: [TokenID: UInt64] = [:]
  var versions: [String: AppVersion] = [:]
  var introduced: [KeyID: IntroducedKey] = [:]
  var ended: Set<KeyID> = []
  /// The users to lock until a time, in Unix seconds, or to remove (nil).
  var users: [String: UInt64?] = [:]

  /// Decodes the claims of a bulletin, and checks that its stamp is what it says.
  fileprivate init(_ bulletin: borrowing Bulletin, of stamp: BulletinStamp, isSealed: Bool) {
    let claims = bulletin.claims
    (issuer, issuedAt, generation) = (bulletin.issuer, claims.issuedAt, claims.generation)
    self.isSealed = isSealed
    let said = BulletinStamp(
      number: claims.number, predecessor: claims.predecessor, issuedAt: claims.issuedAt, audience: claims.audience)
    #expect(said == stamp)
    claims.revoked.forEach { revoked[$0.tokenID] = $0.until }
    claims.versions.forEach { versions[$0.subject.description] = $0.version }
    claims.introduced.forEach { introduced[Self.keyID(of: $0.point)] = $0 }
    claims.ended.forEach { ended.insert($0.keyID) }
    claims.users.forEach { users.updateValue($0.until, forKey: $0.user.description) }
  }
}

extension SaidClaims {
  fileprivate static func keyID(of point: P256Point) -> KeyID {
    var cryptography = OpenSSLCryptography()
    return (try? HoldfastCore.keyID(of: point, using: &cryptography)) ?? KeyID()
  }
}

extension IssuedBulletin {
  /// Decodes the bulletin. One that is sealed is opened with the key of ``TestFleet/device(_:key:)``.
  func says() throws -> SaidClaims {
    guard Bulletin.isSealed(bytes.span) else {
      let bulletin = try Bulletin(bytes.span)
      return SaidClaims(bulletin, of: stamp, isSealed: false)
    }
    let number = stamp.audience.bytes[0]
    var key = try P256PrivateKey(scalar: secret([UInt8](repeating: number, count: 32)))
    var cryptography = OpenSSLCryptography()
    let keyID = try keyID(of: key.publicPoint, using: &cryptography)
    var opener = TokenOpener()
    try opener.decryptCOSE(bytes.span, key: &key, keyID: keyID, using: &cryptography)
    let bulletin = try Bulletin(opener.plaintext.bytes, sealedTo: DeviceID(stamp.audience.bytes))
    return SaidClaims(bulletin, of: stamp, isSealed: true)
  }
}

/// A device that takes bulletins by the rules of docs/couriers.md, and gets them as a prover fetches and delivers them.
struct TakingDevice {
  let capacity: Int
  var id: DeviceID?
  var numbers: [AudienceID: UInt64] = [:]
  var revoked: [TokenID: UInt64] = [:]
  var generation: UInt64 = 1
  /// The minimum versions for tokens under each key.
  var versions: [KeyID: [String: AppVersion]] = [:]
  /// The changes of users, in order, such as "lock alice" or "remove bob".
  var userEvents: [String] = []
  var takenCount = 0

  init(capacity: Int, id: DeviceID? = nil) { (self.capacity, self.id) = (capacity, id) }

  mutating func visit(_ test: TestFleet) throws {
    var have: UInt64 = 0
    while true {
      let bulletins = try test.fleet.bulletins(for: id ?? test.device.deviceID, above: have)
      #expect(bulletins.count <= 16 && bulletins.map(\.bytes.count).reduce(0, +) <= 16_384)
      guard let last = bulletins.last else { return }
      // A prover ends its visit when the device has no room.
      for bulletin in bulletins { guard take(bulletin) else { return } }
      have = last.stamp.number
    }
  }

  /// Takes a bulletin if it can, and returns whether it has room.
  @discardableResult
  mutating func take(_ bulletin: IssuedBulletin) -> Bool {
    let number = numbers[bulletin.stamp.audience] ?? 0
    guard bulletin.stamp.number > number, bulletin.stamp.predecessor <= number, let said = try? bulletin.says() else {
      return true
    }
    let merged = revoked.filter { $0.value > said.issuedAt }.merging(said.revoked) { $1 }
    guard merged.count <= capacity else { return false }
    (revoked, numbers[bulletin.stamp.audience]) = (merged, bulletin.stamp.number)
    generation = max(generation, said.generation ?? 0)
    versions[said.issuer, default: [:]].merge(said.versions) { max($0, $1) }
    for user in said.users.keys.sorted() {
      userEvents.append(said.users[user] == .some(nil) ? "remove \(user)" : "lock \(user)")
    }
    takenCount += 1
    return true
  }

  func refuses(_ token: TokenID, in test: TestFleet) throws -> Bool {
    let record = try test.perform("showToken", key: hexadecimal(token))
    return revoked[token] != nil || record["generation"]?.number ?? 0 < generation
  }
}

extension TestFleet {
  func bulletins(for device: DeviceDescriptor? = nil, above have: UInt64 = 0) throws -> [IssuedBulletin] {
    try fleet.bulletins(for: (device ?? self.device).deviceID, above: have)
  }

  func revoke(_ token: TokenID) throws { try fleet.revoke(token: token, reason: "lost", by: owner) }

  func setGroups(_ names: [String], of device: DeviceDescriptor? = nil, capacity: UInt64? = nil) throws {
    var members: [(String, JSONValue)] = [("groups", .array(names.map { .string($0) }))]
    if let capacity { members.append(("revocation_capacity", .integer(capacity))) }
    _ = try perform("setGroups", key: hexadecimal((device ?? self.device).deviceID), body: .object(members))
  }
}

extension Array {
  /// The only element; nil if there is none, or another.
  var only: Element? { count == 1 ? self[0] : nil }
}
