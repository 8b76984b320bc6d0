/// How often each status went to peers that had proved nothing.
public struct UnprovedTotals: Sendable {
  private var counts = InlineArray<18, UInt64>(repeating: 0)

  /// None at all.
  public init() {}

  public subscript(status: Status) -> UInt64 {
    get { counts[Int(status.rawValue)] }
    set { counts[Int(status.rawValue)] = newValue }
  }

  /// How many statuses were given at all.
  public var statusCount: Int {
    var statusCount = 0
    for index in counts.indices where counts[index] > 0 { statusCount += 1 }
    return statusCount
  }

  /// Takes those of `other` too.
  public mutating func add(_ other: UnprovedTotals) {
    for index in counts.indices { counts[index] += other.counts[index] }
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
      try sink.appendCBOR(unsigned: counts[index])
    }
  }

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    var previous = -1
    for _ in 0..<(try reader.arrayHead()) {
      try reader.array(of: 2)
      let status = try reader.status()
      guard Int(status.rawValue) > previous else { throw .unexpected }
      previous = Int(status.rawValue)
      self[status] = try reader.unsigned()
      guard self[status] > 0 else { throw .unexpected }
    }
  }
}

extension CBORReader {
  mutating func status() throws(EncodingFault) -> Status {
    guard let raw = UInt8(exactly: try unsigned()), let status = Status(rawValue: raw) else { throw .unexpected }
    return status
  }
}
