import HoldfastCore

/// The request numbers that were accepted with each token, for at most 64 tokens.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Reads the record of the token of a numbered round, and finds the place that the record has or may take.
  package mutating func readRequest(_ snapshot: inout LedgerSnapshot, for round: borrowing AppraisalInput)
    throws(EncodingFault)
  {
    requestPlace = nil
    guard round.requestNumber != nil else { return }
    requestTimes.advance(to: round.monotonicMilliseconds)
    if let known = try findRequest(of: round.tokenID, round.verifyingKey) {
      requestPlace = known.place
      snapshot.request = known.record
      snapshot.request?.outcome = index.outcomes[known.place]
    } else {
      requestPlace = try placeForRequest()
      snapshot.hasRequestRoom = requestPlace != nil
    }
  }

  /// Drafts the record of a round's token.
  package mutating func draftRequest(_ record: RequestRecord, of round: borrowing AppraisalInput) throws(EncodingFault)
  {
    guard let place = requestPlace else { throw .unexpected }
    try RequestItem(round, place: place, record).encode(into: &draft)
    if let outcome = record.outcome { try draft.append(outcome, of: place) }
    // The store keeps no outcome of a number below the highest.
    runningNumber = record.highest == round.requestNumber ? record.highest : nil
    requestTimes.note(place)
  }

  /// Records the outcome of an accepted request.
  public mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    // If this fails, the outcome stays unknown, and a repetition is answered with `internal`.
    guard let place = requestPlace, runningNumber == request.number else { return }
    runningNumber = nil
    try? self.record { (store: inout Self) throws(EncodingFault) in try store.draft.append(outcome, of: place) }
  }

  @inline(never)
  private func findRequest(of tokenID: TokenID, _ verifyingKey: KeyID?) throws(EncodingFault) -> RequestItem? {
    let places = index.requests.span
    for position in places.indices where places[position] != 0 {
      let bytes = journal.bytes(from: places[position])
      guard RequestItem.mayBe(about: tokenID, bytes) else { continue }
      let item = try RequestItem(bytes)
      if item.tokenID == tokenID, item.verifyingKey == verifyingKey { return item }
    }
    return nil
  }

  /// Returns a free place, that of an expired token, or that of the token that was accepted longest ago, if that is long
  /// enough ago. Returns nil if there is none.
  private func placeForRequest() throws(EncodingFault) -> Int? {
    for position in index.requests.indices where index.requests[position] == 0 { return position }
    for position in index.requests.indices {
      let item = try RequestItem(journal.bytes(from: index.requests[position]))
      if item.record.expires <= state.clockFloor { return position }
    }
    return requestTimes.oldest
  }

  /// Returns whether the clock floor has passed the `exp` of the token of an item in a slot.
  package func isOutdatedRequest(_ place: UInt16, in slot: Int) throws(StoreFault) -> Bool {
    guard place != 0 else { return false }
    let item = try journal.itemRange(at: slot + Int(place))
    do throws(EncodingFault) {
      return try RequestItem(journal.bytes.extracting(item)).record.expires <= state.clockFloor
    } catch { throw .damaged }
  }
}

/// The time at which a number of each token was last accepted, as far as is known since this start of the device.
package struct RequestTimes {
  /// The number of tokens whose request numbers are kept.
  package static var capacity: Int { Limit.requests.microcontroller }
  /// The least age of a record that may be dropped, in seconds. It is longer than the time in which a challenge can be
  /// answered and the answer repeated.
  private static var leastSeconds: UInt16 { 60 }
  /// The age to which older records are limited, in seconds: more than four hours.
  private static var greatestSeconds: UInt16 { 0x4000 }

  /// The times, in seconds since the first round, modulo 2^16.
  private var times = InlineArray<64, UInt16>(repeating: 0)
  /// The monotonic time of the first round, in milliseconds. Records that were loaded at the start count as written then,
  /// because they may have been written just before the start.
  private var first: UInt64?
  /// The current time, and the time of the last ``lookThrough()``, both in seconds since the first round.
  private var now: UInt64 = 0
  private var looked: UInt64 = 0

  package init(first: UInt64? = nil) {
    self.first = first
  }

  package mutating func advance(to milliseconds: UInt64) {
    let start = first ?? milliseconds
    first = start
    now = max(now, (max(milliseconds, start) - start) / 1000)
    if now - looked >= UInt64(Self.greatestSeconds) { lookThrough() }
  }

  package mutating func note(_ place: Int) { times[place] = UInt16(truncatingIfNeeded: now) }

  /// The place of the record that was written longest ago; nil if it may not be dropped yet.
  package var oldest: Int? {
    var (oldest, greatest) = (0, UInt16(0))
    for position in times.indices where age(position) > greatest { (oldest, greatest) = (position, age(position)) }
    return greatest > Self.leastSeconds ? oldest : nil
  }

  private func age(_ place: Int) -> UInt16 { UInt16(truncatingIfNeeded: now) &- times[place] }

  /// Limits the age of old times, before they wrap around and seem to be new.
  @inline(never)
  private mutating func lookThrough() {
    let isLongAgo = now - looked >= 0x8000
    for position in times.indices where isLongAgo || age(position) > Self.greatestSeconds {
      times[position] = UInt16(truncatingIfNeeded: now) &- Self.greatestSeconds
    }
    looked = now
  }
}

/// The request numbers that were accepted with a token, in the journal: `[12, jti, place, kid / null, expires, highest,
/// window (8 bytes), digest (16 bytes)]`.
///
/// `place` is the item's place in the index, so that a record that was dropped for it stays dropped after a start. The
/// outcome is a separate item, which is written later.
struct RequestItem {
  /// The key that signed the token; nil for an unsigned one.
  let verifyingKey: KeyID?
  let tokenID: TokenID
  let place: Int
  let record: RequestRecord

  init(_ round: borrowing AppraisalInput, place: Int, _ record: RequestRecord) {
    (verifyingKey, tokenID) = (round.verifyingKey, round.tokenID)
    (self.place, self.record) = (place, record)
  }

  /// Reads the item at the beginning of `item`.
  init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .request else { throw .unexpected }
    tokenID = try reader.fixedBytes()
    place = try reader.requestPlace()
    verifyingKey = try reader.optionalKeyID()
    let expires = try reader.unsigned()
    let highest = try reader.unsigned()
    let window: FixedBytes<8> = try reader.fixedBytes()
    record = RequestRecord(
      highest: highest, window: UInt64(window), digest: try reader.fixedBytes(), expires: expires, outcome: nil)
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.request)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(unsigned: UInt64(place))
    try sink.appendOptional(verifyingKey)
    try sink.appendCBOR(unsigned: record.expires)
    try sink.appendCBOR(unsigned: record.highest)
    try sink.appendCBOR(bytes: FixedBytes<8>(record.window).bytes)
    try sink.appendCBOR(bytes: record.digest.bytes)
  }

  /// Returns whether the item at the beginning of these bytes may be about `tokenID`. This saves decoding most other items.
  static func mayBe(about tokenID: TokenID, _ item: Span<UInt8>) -> Bool {
    // The token id follows the head of the array, the kind, and the head of the byte string.
    item[3] == tokenID[0] && item[4] == tokenID[1]
  }
}

extension CBORReader {
  /// Reads a place in the index.
  package mutating func requestPlace() throws(EncodingFault) -> Int {
    let place = try unsigned()
    guard place < UInt64(RequestTimes.capacity) else { throw .unexpected }
    return Int(place)
  }

  /// Reads the outcome of a request.
  package mutating func outcome() throws(EncodingFault) -> Status {
    switch try unsigned() {
    case UInt64(Status.accepted.rawValue): .accepted
    case UInt64(Status.internal.rawValue): .internal
    default: throw .unexpected
    }
  }
}

extension ByteSink where Self: ~Copyable {
  /// Appends the outcome of the request with the highest number at `place`.
  package mutating func append(_ outcome: Status, of place: Int) throws(Failure) {
    try begin(.outcome)
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
  /// Encodes the value, big-endian.
  fileprivate init(_ value: UInt64) {
    self.init()
    var rest = value
    for index in 0..<8 {
      self[7 - index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }
}
