/// How often each status was given, at most 2^32 - 1 times each.
public struct UnprovedTotals: Sendable {
  /// One place for each status by its number. A test holds it against `Status.allCases`: an array of exactly so many places cannot
  /// be made from that without a heap.
  private var counts = InlineArray<24, UInt32>(repeating: 0)

  /// How many statuses there is a place for: all numbers of a status are below it.
  static var placeCount: Int { 24 }

  /// None at all.
  public init() {}

  public subscript(status: Status) -> UInt64 {
    get { UInt64(counts[Self.place(of: status)]) }
    set { counts[Self.place(of: status)] = UInt32(clamping: newValue) }
  }

  /// A status without a place would be counted in the last one, rather than end the device.
  private static func place(of status: Status) -> Int { min(Int(status.rawValue), placeCount - 1) }

  /// How many statuses were given at all.
  public var statusCount: Int {
    var statusCount = 0
    for index in counts.indices where counts[index] > 0 { statusCount += 1 }
    return statusCount
  }

  /// Takes those of `other` too.
  public mutating func add(_ other: UnprovedTotals) {
    for index in counts.indices {
      counts[index] = UInt32(clamping: UInt64(counts[index]) + UInt64(other.counts[index]))
    }
  }
}

extension UnprovedTotals: Equatable {
  public static func == (left: UnprovedTotals, right: UnprovedTotals) -> Bool {
    for index in left.counts.indices where left.counts[index] != right.counts[index] { return false }
    return true
  }
}

extension UnprovedTotals {
  /// Writes `[[status, count] …]`, by status, without those that were never given.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: statusCount)
    for index in counts.indices where counts[index] > 0 {
      try sink.appendCBOR(array: 2)
      try sink.appendCBOR(unsigned: UInt64(index))
      try sink.appendCBOR(unsigned: UInt64(counts[index]))
    }
  }

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    var previous = -1
    for _ in 0..<(try reader.arrayHead()) {
      try reader.array(of: 2)
      let status = try reader.status()
      guard Int(status.rawValue) > previous else { throw .unexpected }
      previous = Int(status.rawValue)
      let count = try reader.unsigned()
      guard count > 0, count <= UInt32.max else { throw .unexpected }
      self[status] = count
    }
  }
}

extension CBORReader {
  mutating func status() throws(EncodingFault) -> Status {
    guard let raw = UInt8(exactly: try unsigned()), let status = Status(rawValue: raw) else { throw .unexpected }
    return status
  }
}

/// Rounds with one token that ended in one status, were denied and changed nothing else.
///
/// A device counts them in memory and writes the counts once a minute at most: a crash loses that minute's counts. Only so many
/// tokens and statuses are told apart; beyond them, rounds are counted by status.
public struct DeniedRounds: Sendable, Equatable {
  public var status: Status
  /// The key that signed the token; nil for an unsigned token, and where tokens are not told apart.
  public var verifyingKey: KeyID?
  /// Nil where tokens are not told apart.
  public var tokenID: TokenID?
  /// How many, at least 1.
  public var count: UInt64

  public init(status: Status, verifyingKey: KeyID?, tokenID: TokenID?, count: UInt64) {
    (self.status, self.verifyingKey, self.tokenID, self.count) = (status, verifyingKey, tokenID, count)
  }
}

extension DeniedRounds {
  /// Writes `status, kid / null, jti / null, count`.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    if let verifyingKey { try sink.appendCBOR(bytes: verifyingKey.bytes) } else { try sink.appendCBORNull() }
    if let tokenID { try sink.appendCBOR(bytes: tokenID.bytes) } else { try sink.appendCBORNull() }
    try sink.appendCBOR(unsigned: count)
  }

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    status = try reader.status()
    verifyingKey = reader.null() ? nil : try reader.fixedBytes()
    tokenID = reader.null() ? nil : try reader.fixedBytes()
    count = try reader.unsigned()
    guard count > 0, status != .accepted, tokenID != nil || verifyingKey == nil else { throw .unexpected }
  }
}
