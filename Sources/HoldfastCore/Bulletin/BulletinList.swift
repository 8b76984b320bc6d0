#if !hasFeature(Embedded)
/// The audiences of a device with the number of the newest bulletin that it has for each, of one issuer's key.
///
/// Source: docs/couriers.md, Numbers.
public struct BulletinList: Sendable, Equatable {
  /// An audience with the number of its newest bulletin; 0 if there is none.
  public struct Row: Sendable, Equatable {
    /// The device, or a group that it belongs to.
    public let audience: AudienceID
    /// The number of the newest bulletin.
    public let number: UInt64

    /// Creates a row.
    public init(audience: AudienceID, number: UInt64) { (self.audience, self.number) = (audience, number) }
  }

  /// The most groups that a device belongs to.
  public static var groupLimit: Int { 8 }

  /// The rows, ascending by audience.
  public private(set) var rows: [Row] = []

  /// Creates a list with these rows, in any order.
  public init(_ rows: [Row]) {
    self.rows = rows.sorted { $0.audience.bytes.precedes($1.audience.bytes) }
  }

  /// Decodes a list.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR or not in order; `unexpected` for another structure, for an empty list, and
  ///   for more than nine rows.
  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    guard count > 0, count <= 1 + Self.groupLimit else { throw .unexpected }
    for _ in 0..<count {
      try reader.array(of: 2)
      let row = Row(audience: try reader.fixedBytes(), number: try reader.unsigned())
      if let last = rows.last, !last.audience.bytes.precedes(row.audience.bytes) { throw .malformed }
      rows.append(row)
    }
  }

  /// Returns the number for an audience; nil if the device does not belong to it.
  public func number(for audience: AudienceID) -> UInt64? { rows.first { $0.audience == audience }?.number }

  /// Writes the list.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: rows.count)
    for row in rows {
      try sink.appendCBOR(array: 2)
      try sink.appendCBOR(bytes: row.audience.bytes)
      try sink.appendCBOR(unsigned: row.number)
    }
  }

  /// Returns the state of the list: SHA-256("holdfast/1 bulletins" ‖ 0x00 ‖ list)[0..<8].
  public func state<Crypto: Cryptography & ~Copyable>(
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> BulletinState {
    try EncodedBulletinList(self).state(using: &cryptography)
  }
}

extension EncodedBulletinList {
  /// Encodes a list.
  package init(_ list: BulletinList) {
    // A list has at most nine rows, of 27 bytes each.
    do throws(EncodingFault) { try list.encode(into: &buffer) } catch { preconditionFailure() }
  }
}
#endif

/// A `BulletinList` as bytes: `[[audience, number] …]`, ascending by audience. A device without a heap keeps lists in this form.
public struct EncodedBulletinList: ~Copyable {
  /// The bytes of the list, at most 244.
  package var buffer = ByteBuffer<248>()

  /// Creates a list without any byte.
  public init() {}

  /// Returns the number for an audience, and the place of its encoding; nil if the device does not belong to it.
  @inline(never)
  package func number(for audience: AudienceID) -> (value: UInt64, place: Range<Int>)? {
    var reader = CBORReader(buffer.bytes)
    do throws(EncodingFault) {
      for _ in 0..<(try reader.arrayHead()) {
        try reader.array(of: 2)
        let isFound = try reader.byteString().elementsEqual(audience.bytes)
        let start = reader.position
        let number = try reader.unsigned()
        if isFound { return (number, start..<reader.position) }
      }
    } catch { return nil }
    return nil
  }

  /// Returns the state of the list: SHA-256("holdfast/1 bulletins" ‖ 0x00 ‖ list)[0..<8].
  package func state<Crypto: Cryptography & ~Copyable>(
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> BulletinState {
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 bulletins")
    hash.append(buffer.bytes)
    let digest: Digest = try hash.finish()
    return BulletinState(digest.bytes.extracting(0..<8))!
  }
}

/// The state of a list of bulletins, 8 bytes.
public typealias BulletinState = FixedBytes<8>
