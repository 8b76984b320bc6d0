/// The claims of a bulletin. The spans point into the bulletin.
///
/// Source: docs/couriers.md, Claims.
public struct BulletinClaims: ~Escapable {
  /// The number of the bulletin, 1 to 2^53 - 1. It rises with each bulletin of one key for one audience.
  public let number: UInt64
  /// The number of the bulletin that a device must have before it can take this one; 0 if it needs none.
  public let predecessor: UInt64
  /// The time when the bulletin was issued, in Unix seconds.
  public let issuedAt: UInt64
  /// The device, or the group of devices, that the bulletin is for.
  public let audience: AudienceID
  /// The tokens that are revoked, at most ``revokedLimit``.
  public private(set) var revoked: BulletinEntries<RevokedToken>
  /// The least generation of tokens that count; nil to leave it as it is.
  public private(set) var generation: UInt64?
  #if hasFeature(Embedded)
  /// Whether there are claims that a microcontroller has no room for: minimum versions, keys or users. They and what follows them were
  /// not read.
  public private(set) var exceedsMicrocontroller = false
  #else
  /// The least versions of apps, at most 16.
  public private(set) var versions: BulletinEntries<MinimumVersion>
  /// The keys that the bulletin's key introduces, at most 4.
  public private(set) var introduced: BulletinEntries<IntroducedKey>
  /// The keys that are not trusted any more, at most 16.
  public private(set) var ended: BulletinEntries<EndedKey>
  /// The users to lock or remove, at most 32.
  public private(set) var users: BulletinEntries<UserChange>
  /// Whether there are claims that a microcontroller has no room for: minimum versions, keys or users.
  public var exceedsMicrocontroller: Bool { versions.count + introduced.count + ended.count + users.count > 0 }
  #endif

  /// The most revoked tokens in one bulletin. With more, it would be too long.
  public static var revokedLimit: Int { 120 }

  /// Decodes claims.
  ///
  /// - Throws: `malformed` if they are not deterministic CBOR, or labels or entries are out of order or repeated; `unexpected` for
  ///   an unknown label, a value of another type, and numbers that contradict each other.
  @_lifetime(copy payload)
  public init(_ payload: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(payload)
    var order = CBORLabelOrder()
    let count = try reader.mapHead()
    guard count >= 4 else { throw .unexpected }
    try reader.label(1, &order)
    number = try reader.unsigned()
    try reader.label(2, &order)
    predecessor = try reader.unsigned()
    try reader.label(3, &order)
    issuedAt = try reader.unsigned()
    try reader.label(4, &order)
    audience = try reader.fixedBytes()
    guard number > predecessor, number / 1000 >= issuedAt else { throw .unexpected }
    revoked = BulletinEntries(of: payload)
    #if !hasFeature(Embedded)
    versions = BulletinEntries(of: payload)
    introduced = BulletinEntries(of: payload)
    ended = BulletinEntries(of: payload)
    users = BulletinEntries(of: payload)
    #endif
    for _ in 4..<count {
      switch try reader.label(&order) {
      case 5: revoked = try BulletinEntries(&reader, of: payload, limit: Self.revokedLimit)
      case 6: generation = try reader.unsigned()
      #if hasFeature(Embedded)
      case 7...10:
        exceedsMicrocontroller = true
        return
      #else
      case 7: versions = try BulletinEntries(&reader, of: payload, limit: 16)
      case 8: introduced = try BulletinEntries(&reader, of: payload, limit: 4)
      case 9: ended = try BulletinEntries(&reader, of: payload, limit: 16)
      case 10: users = try BulletinEntries(&reader, of: payload, limit: 32)
      #endif
      default: throw .unexpected
      }
    }
    try reader.finish()
  }
}

/// The entries of one claim of a bulletin, which were checked and are decoded again at each use.
public struct BulletinEntries<Entry: BulletinEntry>: ~Escapable {
  /// The number of entries; 0 if the claim is absent.
  public let count: Int
  private let bytes: Span<UInt8>

  /// Creates the entries of an absent claim.
  @_lifetime(copy payload)
  init(of payload: Span<UInt8>) {
    count = 0
    bytes = payload.extracting(first: 0)
  }

  /// Reads an array of 1 to `limit` entries in ascending order.
  @_lifetime(copy payload)
  init(_ reader: inout CBORReader, of payload: Span<UInt8>, limit: Int) throws(EncodingFault) {
    count = try reader.arrayHead()
    guard count > 0, count <= limit else { throw .unexpected }
    let start = reader.position
    var previous = try Entry(&reader)
    for _ in 1..<count {
      let entry = try Entry(&reader)
      guard previous.precedes(entry) else { throw .malformed }
      previous = entry
    }
    bytes = payload.extracting(start..<reader.position)
  }

  /// Calls `body` with each entry, in order.
  public func forEach<Failure: Error>(_ body: (Entry) throws(Failure) -> Void) throws(Failure) {
    var reader = CBORReader(bytes)
    for _ in 0..<count {
      let entry: Entry
      do throws(EncodingFault) { entry = try Entry(&reader) } catch { preconditionFailure() }
      try body(entry)
    }
  }
}

/// An entry of a claim of a bulletin.
public protocol BulletinEntry {
  /// Decodes an entry.
  init(_ reader: inout CBORReader) throws(EncodingFault)

  /// Returns whether the entry comes before `other`, and is not the same.
  func precedes(_ other: Self) -> Bool
}

/// A token that is revoked.
public struct RevokedToken: BulletinEntry, Sendable, Equatable {
  /// The id of the token.
  public let tokenID: TokenID
  /// The time from which the entry no longer matters, in Unix seconds: the token's `exp`.
  public let until: UInt64

  /// Decodes an entry.
  public init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 2)
    tokenID = try reader.fixedBytes()
    until = try reader.unsigned()
  }

  /// Returns whether the entry comes before `other`.
  public func precedes(_ other: Self) -> Bool { tokenID.bytes.precedes(other.tokenID.bytes) }
}

/// The least version of an app.
public struct MinimumVersion: BulletinEntry, Sendable, Equatable {
  /// The app that tokens name as `sub`, 1 to 64 bytes.
  public let subject: BoundedText<64>
  /// The least version.
  public let version: AppVersion

  /// Decodes an entry.
  public init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 4)
    subject = try reader.name()
    version = AppVersion(major: try reader.unsigned(), minor: try reader.unsigned(), patch: try reader.unsigned())
  }

  /// Returns whether the entry comes before `other`.
  public func precedes(_ other: Self) -> Bool { subject.bytes.precedes(other.subject.bytes) }
}

/// A key that another one introduces.
public struct IntroducedKey: BulletinEntry, Sendable, Equatable {
  /// The key.
  public let point: P256Point
  /// The time from which it is trusted, in Unix seconds.
  public let from: UInt64
  /// The time from which it is no longer trusted, in Unix seconds, later than ``from``.
  public let until: UInt64

  /// Creates a key with the times of its trust.
  public init(point: P256Point, from: UInt64, until: UInt64) {
    (self.point, self.from, self.until) = (point, from, until)
  }

  /// Decodes an entry.
  public init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 4)
    point = P256Point(x: try reader.fixedBytes(), y: try reader.fixedBytes())
    from = try reader.unsigned()
    until = try reader.unsigned()
    guard from < until else { throw .unexpected }
  }

  /// Returns whether the entry comes before `other`.
  public func precedes(_ other: Self) -> Bool { point.bytes.precedes(other.point.bytes) }
}

/// A user to be locked or removed.
public struct UserChange: BulletinEntry, Sendable, Equatable {
  /// The user, 1 to 32 bytes.
  public let user: BoundedText<32>
  /// The time until which the user is locked, in Unix seconds; nil to remove the user.
  public let until: UInt64?

  /// Decodes an entry.
  public init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 2)
    user = try reader.name()
    until = reader.null() ? nil : try reader.unsigned()
  }

  /// Returns whether the entry comes before `other`.
  public func precedes(_ other: Self) -> Bool { user.bytes.precedes(other.user.bytes) }
}

/// A key that ends.
public struct EndedKey: BulletinEntry, Sendable, Equatable {
  /// The id of the key.
  public let keyID: KeyID

  /// Decodes an entry.
  public init(_ reader: inout CBORReader) throws(EncodingFault) { keyID = try reader.fixedBytes() }

  /// Returns whether the entry comes before `other`.
  public func precedes(_ other: Self) -> Bool { keyID.bytes.precedes(other.keyID.bytes) }
}

extension CBORReader {
  /// Reads a text of at least one byte.
  fileprivate mutating func name<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()), !text.isEmpty else { throw .unexpected }
    return text
  }
}

extension Span where Element == UInt8 {
  /// Returns whether these bytes come before `other` in the order of bytes, where a text comes before those that continue it.
  package func precedes(_ other: Span<UInt8>) -> Bool {
    for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
      return self[index] < other[index]
    }
    return count < other.count
  }
}
