import HoldfastCore
import HoldfastFormats

/// The contents of a bulletin, apart from its number, its time and its audience. A bulletin with empty contents only tells the time.
///
/// Source: docs/couriers.md, Claims.
public struct BulletinContents: Sendable, Equatable {
  /// The revoked tokens, each with its `exp`, in Unix seconds.
  public var revoked: [TokenID: UInt64] = [:]
  /// The least generation of tokens; nil to leave it as it is.
  public var generation: UInt64?
  /// The least versions of apps, by their names of 1 to 64 bytes.
  public var minimumVersions: [BoundedText<64>: AppVersion] = [:]
  /// The keys to introduce, with the times of their trust.
  public var introduced: [IntroducedKey] = []
  /// The keys that end.
  public var ended: Set<KeyID> = []
  /// The users to lock until a time, in Unix seconds, or to remove (nil), by their names of 1 to 32 bytes. Such a bulletin is sealed.
  public var users: [BoundedText<32>: UInt64?] = [:]

  /// Creates empty contents.
  public init() {}

  /// The most apps of which one bulletin names the least version.
  package static let versionLimit = 16
  /// The most users that one bulletin names.
  package static let userLimit = 32

  /// The most bytes of claims that fit into a bulletin, also into a sealed one.
  private static var claimsLimit: Int { 2800 }
  /// The most bytes of claims that fit into a bulletin that is not sealed.
  private static var unsealedClaimsLimit: Int { 2900 }
  /// The most revoked tokens in one of several parts: they have up to 27 bytes each.
  private static var partLimit: Int { 100 }

  /// Whether one bulletin can say all this. It is sealed if it names users.
  package var fitsOneBulletin: Bool {
    guard revoked.count <= BulletinClaims.revokedLimit, minimumVersions.count <= Self.versionLimit,
      users.count <= Self.userLimit
    else { return false }
    return claims(Self.longestStamp).count <= (users.isEmpty ? Self.unsealedClaimsLimit : Self.claimsLimit)
  }

  /// A stamp that takes as many bytes as any.
  private static var longestStamp: BulletinStamp {
    BulletinStamp(
      number: maximumInteger, predecessor: maximumInteger, issuedAt: maximumInteger, audience: AudienceID())
  }

  /// Returns the contents in parts, of which those with revoked tokens fit into one bulletin each. There is at least one.
  func parts() -> [BulletinContents] {
    guard revoked.count > BulletinClaims.revokedLimit || claims(Self.longestStamp).count > Self.claimsLimit else {
      return [self]
    }
    var rest = revoked.sorted { $0.key.bytes.precedes($1.key.bytes) }[...]
    var parts: [BulletinContents] = []
    while !rest.isEmpty {
      var part = BulletinContents()
      part.revoked = Dictionary(uniqueKeysWithValues: rest.prefix(Self.partLimit).map { ($0.key, $0.value) })
      rest = rest.dropFirst(Self.partLimit)
      parts.append(part)
    }
    // What is not a revocation comes last, in a part of its own.
    var others = self
    others.revoked = [:]
    return others == BulletinContents() ? parts : parts + [others]
  }

  /// Returns the claims as deterministic CBOR.
  ///
  /// Source: docs/couriers.md, Claims.
  func claims(_ stamp: BulletinStamp) -> [UInt8] {
    var claims: [UInt8] = []
    let counts = [revoked.count, minimumVersions.count, introduced.count, ended.count, users.count]
    claims.appendCBOR(map: 4 + counts.count { $0 > 0 } + (generation == nil ? 0 : 1))
    for (label, value) in [(1, stamp.number), (2, stamp.predecessor), (3, stamp.issuedAt)] as [(UInt64, UInt64)] {
      claims.appendCBOR(unsigned: label)
      claims.appendCBOR(unsigned: value)
    }
    claims.appendCBOR(unsigned: 4)
    claims.appendCBOR(bytes: stamp.audience.bytes)
    claims.append(5, revoked.sorted { $0.key.bytes.precedes($1.key.bytes) }) { (sink, token) in
      sink.appendCBOR(array: 2)
      sink.appendCBOR(bytes: token.key.bytes)
      sink.appendCBOR(unsigned: token.value)
    }
    if let generation {
      claims.appendCBOR(unsigned: 6)
      claims.appendCBOR(unsigned: generation)
    }
    claims.append(7, minimumVersions.sorted { $0.key.bytes.precedes($1.key.bytes) }) { (sink, app) in
      sink.appendCBOR(array: 4)
      sink.appendCBOR(text: app.key.bytes)
      for number in [app.value.major, app.value.minor, app.value.patch] { sink.appendCBOR(unsigned: number) }
    }
    claims.append(8, introduced.sorted { $0.precedes($1) }) { (sink, key) in
      sink.appendCBOR(array: 4)
      sink.appendCBOR(bytes: key.point.x.bytes)
      sink.appendCBOR(bytes: key.point.y.bytes)
      sink.appendCBOR(unsigned: key.from)
      sink.appendCBOR(unsigned: key.until)
    }
    claims.append(9, ended.sorted { $0.bytes.precedes($1.bytes) }) { (sink, keyID) in
      sink.appendCBOR(bytes: keyID.bytes)
    }
    claims.append(10, users.sorted { $0.key.bytes.precedes($1.key.bytes) }) { (sink, user) in
      sink.appendCBOR(array: 2)
      sink.appendCBOR(text: user.key.bytes)
      if let until = user.value { sink.appendCBOR(unsigned: until) } else { sink.appendCBORNull() }
    }
    return claims
  }
}

extension [UInt8] {
  /// Appends a label and an array, unless the array is empty.
  fileprivate mutating func append<Entry>(
    _ label: UInt64, _ entries: [Entry], _ write: (inout [UInt8], Entry) -> Void
  ) {
    guard !entries.isEmpty else { return }
    appendCBOR(unsigned: label)
    appendCBOR(array: entries.count)
    for entry in entries { write(&self, entry) }
  }
}

/// The number, time and audience of a bulletin.
public struct BulletinStamp: Sendable, Equatable {
  /// The number, greater than those of all earlier bulletins of the key for the audience.
  public let number: UInt64
  /// The number of the bulletin before it; 0 if a device needs none.
  public let predecessor: UInt64
  /// The time, in Unix seconds.
  public let issuedAt: UInt64
  /// The device or the group.
  public let audience: AudienceID

  /// Creates a stamp from its parts.
  package init(number: UInt64, predecessor: UInt64, issuedAt: UInt64, audience: AudienceID) {
    (self.number, self.predecessor, self.issuedAt, self.audience) = (number, predecessor, issuedAt, audience)
  }

  /// Creates the stamp of the next bulletin after `last`: its number is at least the time in milliseconds, so that it rises even if the
  /// record of the last number was lost.
  ///
  /// - Parameters:
  ///   - last: the number of the last bulletin for the audience; 0 if there was none.
  ///   - isComplete: whether the bulletin needs none before it.
  ///   - milliseconds: the time, in milliseconds since 1970.
  ///   - audience: the device or the group.
  public init(after last: UInt64, isComplete: Bool, milliseconds: UInt64, audience: AudienceID) {
    number = max(milliseconds, last + 1)
    predecessor = isComplete ? 0 : last
    issuedAt = milliseconds / 1000
    self.audience = audience
  }
}
