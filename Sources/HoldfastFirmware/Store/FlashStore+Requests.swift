import HoldfastCore

/// Keeping the request numbers that were accepted with each token, at most 64 tokens'.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Reads what is known of the token of a numbered round, and finds the place that its record has or may take.
  mutating func readRequest(_ snapshot: inout LedgerSnapshot, for round: borrowing Round) throws(EncodingFault) {
    requestPlace = nil
    guard let identity = RequestIdentity(round) else { return }
    requestAges.advance(to: round.monotonicMilliseconds)
    if let known = try findRequest(identity) {
      requestPlace = known.place
      // A record of a token that has expired since is none: the place is free for the token that comes again.
      if known.expires > state.clockFloor { snapshot.request = known.record }
    } else {
      requestPlace = try placeForRequest()
      snapshot.canKeepRequest = requestPlace != nil
    }
  }

  /// A token that comes again with a later `exp` is kept for as long as the later one says.
  mutating func draftRequest(_ record: RequestRecord, of round: borrowing Round) throws(EncodingFault) {
    guard let place = requestPlace, let identity = RequestIdentity(round) else { throw .unexpected }
    var item = RequestItem(round, place: place, record)
    if let known = try findRequest(identity) { item.expires = max(item.expires, known.expires) }
    try item.encode(into: &draft)
    requestAges.reset(place)
  }

  public mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    // Where this fails the outcome stays unknown, and a repetition is told so.
    guard let item = try? findRequest(request), item.record.highest == request.number else { return }
    try? record { (store: inout Self) throws(EncodingFault) in
      var item = item
      item.record.outcome = outcome
      try item.encode(into: &store.draft)
    }
  }

  @inline(never)
  private func findRequest(_ wanted: RequestIdentity) throws(EncodingFault) -> RequestItem? {
    let places = index.requests.span
    for position in places.indices where places[position] != 0 {
      guard RequestItem.mayBe(about: wanted.tokenID, journal.bytes(from: places[position])) else { continue }
      let item = try RequestItem(try journal.item(places[position]))
      if item.tokenID == wanted.tokenID, item.verifyingKey == wanted.verifyingKey { return item }
    }
    return nil
  }

  /// A free place, one of an expired token, or that of the token that was accepted longest ago, if that is long enough.
  private func placeForRequest() throws(EncodingFault) -> Int? {
    for position in index.requests.indices where index.requests[position] == 0 { return position }
    for position in index.requests.indices {
      if try RequestItem(try journal.item(index.requests[position])).expires <= state.clockFloor { return position }
    }
    return requestAges.oldest
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

/// How long ago a number of each token was accepted, as far as this start of the device knows.
struct RequestAges {
  /// How many tokens' numbers are kept.
  static var capacity: Int { 64 }
  /// How long a record stays at least, in seconds: longer than a challenge can be answered, and its answer repeated.
  private static var leastSeconds: UInt16 { 60 }

  private var seconds = InlineArray<64, UInt16>(repeating: 0)
  /// Until when ``seconds`` are counted, by the clock that only goes forward; nil before the first round. What was read at the
  /// start may have been written just before it.
  private var countedMilliseconds: UInt64?

  @inline(never)
  mutating func advance(to milliseconds: UInt64) {
    guard let counted = countedMilliseconds, milliseconds > counted else {
      if countedMilliseconds == nil { countedMilliseconds = milliseconds }
      return
    }
    let passed = (milliseconds - counted) / 1000
    guard passed > 0 else { return }
    countedMilliseconds = counted + passed * 1000
    for position in seconds.indices {
      seconds[position] = UInt16(clamping: UInt64(seconds[position]) + min(passed, UInt64(UInt16.max)))
    }
  }

  mutating func reset(_ place: Int) { seconds[place] = 0 }

  /// The place of the record that was written longest ago, if it may be dropped.
  var oldest: Int? {
    var oldest = 0
    for position in seconds.indices where seconds[position] > seconds[oldest] { oldest = position }
    return seconds[oldest] > Self.leastSeconds ? oldest : nil
  }
}
