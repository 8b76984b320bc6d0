import HoldfastCore

/// Keeping the request numbers that were accepted with each token, at most 64 tokens'.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Reads what is known of the token of a numbered round, and finds the place that its record has or may take.
  mutating func readRequest(_ snapshot: inout LedgerSnapshot, for round: borrowing Round) throws(EncodingFault) {
    requestPlace = nil
    guard round.requestNumber != nil else { return }
    requestTimes.advance(to: round.monotonicMilliseconds)
    keptUntil = 0
    if let known = try findRequest(of: round.tokenID, round.verifyingKey) {
      (requestPlace, keptUntil) = (known.place, known.expires)
      // A record of a token that has expired since is none: the place is free for the token that comes again.
      guard known.expires > state.clockFloor else { return }
      snapshot.request = known.record
      snapshot.request?.outcome = index.outcomes[known.place]
    } else {
      requestPlace = try placeForRequest()
      snapshot.canKeepRequest = requestPlace != nil
    }
  }

  /// A token that comes again with a later `exp` is kept for as long as the later one says.
  mutating func draftRequest(_ record: RequestRecord, of round: borrowing Round) throws(EncodingFault) {
    guard let place = requestPlace else { throw .unexpected }
    try RequestItem(round, place: place, expires: max(round.expires, keptUntil), record).encode(into: &draft)
    if let outcome = record.outcome { try draft.append(outcome, of: place) }
    // The outcome of a number below the highest is not kept.
    runningNumber = record.highest == round.requestNumber ? record.highest : nil
    requestTimes.note(place)
  }

  public mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    // Where this fails the outcome stays unknown, and a repetition is told so.
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

  /// A free place, one of an expired token, or that of the token that was accepted longest ago, if that is long enough.
  private func placeForRequest() throws(EncodingFault) -> Int? {
    for position in index.requests.indices where index.requests[position] == 0 { return position }
    for position in index.requests.indices {
      if try RequestItem(journal.bytes(from: index.requests[position])).expires <= state.clockFloor { return position }
    }
    return requestTimes.oldest
  }

  /// Whether the clock floor has passed the `exp` of the token that an item of a slot is about.
  func isOutdatedRequest(_ place: UInt16, in slot: Int) throws(StoreFault) -> Bool {
    guard place != 0 else { return false }
    let item = try journal.itemRange(at: slot + Int(place))
    do throws(EncodingFault) {
      return try RequestItem(journal.bytes.extracting(item)).expires <= state.clockFloor
    } catch { throw .damaged }
  }
}

/// When a number of each token was accepted last, as far as this start of the device knows.
struct RequestTimes {
  /// How many tokens' numbers are kept.
  static var capacity: Int { 64 }
  /// How long a record stays at least, in seconds: longer than a challenge can be answered, and its answer repeated.
  private static var leastSeconds: UInt16 { 60 }
  /// Older records are all as old as this, in seconds: more than four hours.
  private static var greatestSeconds: UInt16 { 0x4000 }

  /// Seconds since the first round, modulo 2^16.
  private var times = InlineArray<64, UInt16>(repeating: 0)
  /// Milliseconds of the first round, by the clock that only goes forward. What was read at the start may have been written
  /// just before it.
  private var first: UInt64?
  /// Seconds since the first round: now, and when ``times`` were looked through last.
  private var now: UInt64 = 0
  private var looked: UInt64 = 0

  mutating func advance(to milliseconds: UInt64) {
    let start = first ?? milliseconds
    first = start
    now = max(now, (max(milliseconds, start) - start) / 1000)
    if now - looked >= UInt64(Self.greatestSeconds) { lookThrough() }
  }

  mutating func note(_ place: Int) { times[place] = UInt16(truncatingIfNeeded: now) }

  /// The place of the record that was written longest ago, if it may be dropped.
  var oldest: Int? {
    var (oldest, greatest) = (0, UInt16(0))
    for position in times.indices where age(position) > greatest { (oldest, greatest) = (position, age(position)) }
    return greatest > Self.leastSeconds ? oldest : nil
  }

  private func age(_ place: Int) -> UInt16 { UInt16(truncatingIfNeeded: now) &- times[place] }

  /// Makes old times younger before they seem to be new ones.
  @inline(never)
  private mutating func lookThrough() {
    let isLongAgo = now - looked >= 0x8000
    for position in times.indices where isLongAgo || age(position) > Self.greatestSeconds {
      times[position] = UInt16(truncatingIfNeeded: now) &- Self.greatestSeconds
    }
    looked = now
  }
}

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
