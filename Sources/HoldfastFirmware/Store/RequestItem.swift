import HoldfastCore

/// The request numbers that were accepted with a token, as the journal has them:
/// `[12, jti, place, kid / null, expires, highest, window (8 bytes), digest (16 bytes), outcome / null]`.
///
/// `place` is where the index has it, so that whatever was dropped for it stays dropped after a start.
struct RequestItem {
  /// The key that signed the token; nil for an unsigned one.
  let verifyingKey: KeyID?
  let tokenID: TokenID
  let place: Int
  var expires: UInt64
  var record: RequestRecord

  init(_ round: borrowing Round, place: Int, _ record: RequestRecord) {
    (verifyingKey, tokenID, expires) = (round.verifyingKey, round.tokenID, round.expires)
    (self.place, self.record) = (place, record)
  }

  init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .request else { throw .unexpected }
    tokenID = try reader.fixedBytes()
    place = try reader.requestPlace()
    verifyingKey = try reader.optionalKeyID()
    expires = try reader.unsigned()
    let highest = try reader.unsigned()
    let window: FixedBytes<8> = try reader.fixedBytes()
    let digest: FixedBytes<16> = try reader.fixedBytes()
    var outcome: Status?
    if !reader.null() {
      outcome = Status(rawValue: UInt8(clamping: try reader.unsigned()))
      guard outcome == .accepted || outcome == .internal else { throw .unexpected }
    }
    try reader.finish()
    record = RequestRecord(highest: highest, window: UInt64(window), digest: digest, outcome: outcome)
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.request, elementCount: 9)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(unsigned: UInt64(place))
    try sink.appendOptional(verifyingKey)
    try sink.appendCBOR(unsigned: expires)
    try sink.appendCBOR(unsigned: record.highest)
    try sink.appendCBOR(bytes: FixedBytes<8>(record.window).bytes)
    try sink.appendCBOR(bytes: record.digest.bytes)
    guard let outcome = record.outcome else { return try sink.appendCBORNull() }
    try sink.appendCBOR(unsigned: UInt64(outcome.rawValue))
  }

  /// Whether the item that begins with these bytes may be about `tokenID`: saves reading most of the others.
  static func mayBe(about tokenID: TokenID, _ item: Span<UInt8>) -> Bool {
    // Behind the heads of the array and of the token id, and the kind.
    for index in 0..<4 where item[3 + index] != tokenID[index] { return false }
    return true
  }
}

extension CBORReader {
  /// Reads a place of the index.
  mutating func requestPlace() throws(EncodingFault) -> Int {
    let place = try unsigned()
    guard place < UInt64(RequestAges.capacity) else { throw .unexpected }
    return Int(place)
  }
}

extension UInt64 {
  fileprivate init(_ bytes: FixedBytes<8>) {
    self = 0
    for index in 0..<8 { self = self << 8 | UInt64(bytes[index]) }
  }
}

extension FixedBytes<8> {
  /// Big-endian.
  fileprivate init(_ value: UInt64) {
    self.init()
    for index in 0..<8 { self[index] = UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * index)) }
  }
}
