import HoldfastCore

/// The request numbers that were accepted with a token, as the journal has them:
/// `[12, jti, place, kid / null, expires, highest, window (8 bytes), digest (16 bytes)]`.
///
/// `place` is where the index has it, so that whatever was dropped for it stays dropped after a start. The outcome is an item of
/// its own, which is written later.
struct RequestItem {
  /// The key that signed the token; nil for an unsigned one.
  let verifyingKey: KeyID?
  let tokenID: TokenID
  let place: Int
  let expires: UInt64
  let record: RequestRecord

  init(_ round: borrowing Round, place: Int, expires: UInt64, _ record: RequestRecord) {
    (verifyingKey, tokenID) = (round.verifyingKey, round.tokenID)
    (self.place, self.expires, self.record) = (place, expires, record)
  }

  /// Reads the item that `item` begins with.
  init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .request else { throw .unexpected }
    tokenID = try reader.fixedBytes()
    place = try reader.requestPlace()
    verifyingKey = try reader.optionalKeyID()
    expires = try reader.unsigned()
    let highest = try reader.unsigned()
    let window: FixedBytes<8> = try reader.fixedBytes()
    record = RequestRecord(
      highest: highest, window: UInt64(window), digest: try reader.fixedBytes(), outcome: nil)
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.request, elementCount: 8)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(unsigned: UInt64(place))
    try sink.appendOptional(verifyingKey)
    try sink.appendCBOR(unsigned: expires)
    try sink.appendCBOR(unsigned: record.highest)
    try sink.appendCBOR(bytes: FixedBytes<8>(record.window).bytes)
    try sink.appendCBOR(bytes: record.digest.bytes)
  }

  /// Whether the item that begins with these bytes may be about `tokenID`: saves reading most of the others.
  static func mayBe(about tokenID: TokenID, _ item: Span<UInt8>) -> Bool {
    // Behind the heads of the array and of the token id, and the kind.
    item[3] == tokenID[0] && item[4] == tokenID[1]
  }
}

extension CBORReader {
  /// Reads a place of the index.
  mutating func requestPlace() throws(EncodingFault) -> Int {
    let place = try unsigned()
    guard place < UInt64(RequestTimes.capacity) else { throw .unexpected }
    return Int(place)
  }

  /// Reads what came of a request.
  mutating func outcome() throws(EncodingFault) -> Status {
    switch try unsigned() {
    case UInt64(Status.accepted.rawValue): .accepted
    case UInt64(Status.internal.rawValue): .internal
    default: throw .unexpected
    }
  }
}

extension ByteSink where Self: ~Copyable {
  /// Appends the outcome of the request with the highest number at `place`.
  mutating func append(_ outcome: Status, of place: Int) throws(Failure) {
    try begin(.outcome, elementCount: 3)
    try appendCBOR(unsigned: UInt64(place))
    try appendCBOR(unsigned: UInt64(outcome.rawValue))
  }
}

extension UInt64 {
  fileprivate init(_ bytes: FixedBytes<8>) {
    self = 0
    let span = bytes.bytes
    for index in span.indices { self = self << 8 | UInt64(span[index]) }
  }
}

extension FixedBytes<8> {
  /// Big-endian.
  fileprivate init(_ value: UInt64) {
    self.init()
    var rest = value
    for index in 0..<8 {
      self[7 - index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }
}
