/// The number of answers with each status, at most 2^32 - 1 each.
package struct UnauthenticatedTotals: Sendable {
  private var counts = Status.Counters(repeating: 0)

  /// Creates totals that are all zero.
  package init() {}

  /// The number of answers with `status`. A value above 2^32 - 1 is stored as 2^32 - 1.
  package subscript(status: Status) -> UInt64 {
    get { UInt64(counts[Int(status.rawValue)]) }
    set { counts[Int(status.rawValue)] = UInt32(clamping: newValue) }
  }

  /// The number of different statuses that were given.
  package var statusCount: Int {
    var statusCount = 0
    for index in counts.indices where counts[index] > 0 { statusCount += 1 }
    return statusCount
  }

  /// Adds the totals of `other`.
  package mutating func add(_ other: UnauthenticatedTotals) {
    for index in counts.indices {
      counts[index] = UInt32(clamping: UInt64(counts[index]) + UInt64(other.counts[index]))
    }
  }
}

extension UnauthenticatedTotals: Equatable {
  /// Returns whether both have the same totals.
  package static func == (left: UnauthenticatedTotals, right: UnauthenticatedTotals) -> Bool {
    for index in left.counts.indices where left.counts[index] != right.counts[index] { return false }
    return true
  }
}

extension UnauthenticatedTotals {
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

/// Denied rounds with one token and one status, which changed nothing else.
///
/// A device counts such rounds in memory and writes the counts at most once a minute, so a crash loses the counts of
/// that minute. It counts a limited number of tokens and statuses separately; beyond that, it counts rounds by status
/// only.
package struct DeniedRounds: Sendable, Equatable {
  /// The status that the rounds ended with.
  package var status: Status
  /// The key that signed or authenticated the token; nil for an unsigned token, and for rounds counted by status only.
  package var verifyingKey: KeyID?
  /// The token's id (`jti`), 16 bytes; nil for rounds counted by status only.
  package var tokenID: TokenID?
  /// The number of rounds, at least 1.
  package var count: UInt64

  /// Creates a count from its parts.
  package init(status: Status, verifyingKey: KeyID?, tokenID: TokenID?, count: UInt64) {
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
