import HoldfastCore

/// The bulletins that the device has taken: their numbers, and the tokens that they revoke.
///
/// Source: docs/couriers.md, Rules for the device.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// The most revoked tokens that the store has room for.
  package static var revocationLimit: Int { Limit.revocations.microcontroller }

  /// Writes the numbers of the newest bulletins of a key. Returns false, and writes nothing, if the device does not trust the key, or if
  /// the key signs no bulletins.
  ///
  /// - Throws: `DeviceFault.store` if they cannot be read.
  @inline(never)
  public mutating func writeBulletins(
    of issuer: KeyID, into list: inout EncodedBulletinList
  ) throws(DeviceFault) -> Bool {
    guard signingKey(issuer) != nil else { return false }
    do throws(EncodingFault) {
      if let position = try generationIndex(of: issuer) {
        try list.buffer.append(try journal.bulletinNumbers(index.generations[position]))
      }
      if list.buffer.count == 0 { try Provision.writeAudiences(of: journal.bytes, into: &list.buffer) }
    } catch { throw .store }
    return true
  }

  /// Takes a bulletin in one transaction: its number, the clock floor, the generation floor and the whole new list of revoked tokens.
  /// A bulletin with other claims is `full`.
  ///
  /// - Throws: `DeviceFault.store` if the bulletin cannot be recorded.
  @inline(never)
  public mutating func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult {
    let (issuer, claims) = (bulletin.issuer, bulletin.claims)
    var list = EncodedBulletinList()
    guard try writeBulletins(of: issuer, into: &list), let number = list.number(for: claims.audience) else {
      return .notAddressed
    }
    if claims.number <= number.value { return .known }
    if claims.predecessor > number.value { return .missed }
    guard claims.issuedAt <= terms.latestIssue else { return .refused }
    let floor = max(state.clockFloor, claims.issuedAt)
    var transaction = ByteBuffer<2560>()
    do throws(EncodingFault) {
      guard !claims.exceedsMicrocontroller else { return .full }
      try writeRevoked(with: bulletin, clockFloor: floor, into: &transaction)
    } catch { return .full }
    try makeRoom(for: Journal<Flash>.longestTransaction)
    defer { draft.removeAll() }
    do throws(EncodingFault) {
      _ = try placeForGeneration(of: issuer)
      try draft.begin(.bulletins)
      try draft.appendCBOR(bytes: issuer.bytes)
      try draft.appendCBOR(unsigned: max(try generationFloor(of: issuer), claims.generation ?? 0))
      try draft.append(list.buffer.bytes.extracting(0..<number.place.lowerBound))
      try draft.appendCBOR(unsigned: claims.number)
      try draft.append(list.buffer.bytes.extracting(droppingFirst: number.place.upperBound))
      var next = state
      next.clockFloor = floor
      try next.encode(into: &draft)
      try draft(
        .bulletinTaken(issuer, claims.audience, number: claims.number), realClock: max(floor, terms.realClock ?? 0))
      try transaction.append(draft.bytes)
    } catch { throw .store }
    hasToldState = false
    try append(transaction.bytes)
    return .taken
  }

  /// Writes the item with the list of revoked tokens as a bulletin changes it; nothing if the bulletin revokes none.
  ///
  /// - Throws: `tooLong` if there are too many.
  @inline(never)
  private func writeRevoked(
    with bulletin: borrowing VerifiedBulletin, clockFloor: UInt64, into item: inout ByteBuffer<2560>
  ) throws(EncodingFault) {
    guard bulletin.claims.revoked.count > 0 else { return }
    try item.begin(.revoked)
    let start = item.count
    try revoked.forEach(after: clockFloor) { (entry) throws(EncodingFault) in try item.append(entry) }
    // The tokens of one bulletin differ.
    let known = start..<item.count
    try bulletin.claims.revoked.forEach { (token) throws(EncodingFault) in
      guard token.until > clockFloor else { return }
      let end = item.count
      try item.append(token.tokenID.bytes)
      try item.append(bulletin.issuer.bytes)
      try item.append(bigEndian: token.until)
      let isKnown = RevokedTokens(item.bytes.extracting(known)).contains(item.bytes.extracting(droppingFirst: end))
      if isKnown { return item.truncate(to: end) }
      guard end - start < RevokedTokens.capacity else { throw .tooLong }
    }
    try item.wrapCBOR(from: start)
  }

  /// Returns whether a bulletin of a key has revoked a token under that key.
  package func isRevoked(_ tokenID: TokenID, of issuer: KeyID) throws(EncodingFault) -> Bool {
    guard index.revoked != 0 else { return false }
    return try revoked.contains(RevokedTokens.start(tokenID, issuer).bytes)
  }

  private var revoked: RevokedTokens {
    @_lifetime(borrow self)
    get throws(EncodingFault) {
      guard index.revoked != 0 else { return RevokedTokens(Span()) }
      var reader = CBORReader(journal.bytes(from: index.revoked))
      _ = try reader.itemKind()
      return RevokedTokens(try reader.byteString())
    }
  }

  /// Adds the state of the bulletins to the acceptance of a numbered request. The state is computed in the first acceptance of a key's
  /// token, which is seldom a remembered one, and again after each bulletin.
  @inline(never)
  package mutating func tellBulletins(
    in decision: inout Decision, on round: borrowing AppraisalInput
  ) throws(DeviceFault) {
    guard decision.status == .accepted, decision.attempt == nil, let issuer = round.verifyingKey else { return }
    if !hasToldState || toldIssuer != issuer { try computeState(of: issuer) }
    guard round.requestNumber != nil, round.compatibilityNonce == nil else { return }
    decision.notice.bulletinState = toldState
  }

  @inline(never)
  private mutating func computeState(of issuer: KeyID) throws(DeviceFault) {
    var list = EncodedBulletinList()
    toldState = nil
    if try writeBulletins(of: issuer, into: &list) {
      do throws(CryptographyFailure) { toldState = try list.state(using: &cryptography) } catch { throw .cryptography }
    }
    (hasToldState, toldIssuer) = (true, issuer)
  }
}

extension Journal where Flash: ~Copyable {
  /// Returns the encoded list in the item at `place`, about a key's generation floor; no bytes if it has none.
  @_lifetime(borrow self)
  func bulletinNumbers(_ place: UInt16) throws(EncodingFault) -> Span<UInt8> {
    let item = try item(place)
    var reader = CBORReader(item)
    guard try reader.itemKind() == .bulletins else { return item.extracting(first: 0) }
    for _ in 0..<2 { try reader.skip() }
    return item.extracting(droppingFirst: reader.position)
  }
}

/// The list of revoked tokens in the journal: entries of 32 bytes, each `jti (16 bytes) ‖ kid (8 bytes) ‖ until (8 bytes, big-endian,
/// Unix seconds)`. The id of the token comes first, because it differs in its first byte.
struct RevokedTokens: ~Escapable {
  private static var entryByteCount: Int { 32 }
  private static var untilOffset: Int { 24 }
  /// The length of the longest list, in bytes.
  static var capacity: Int { Limit.revocations.microcontroller * entryByteCount }

  private let entries: Span<UInt8>

  @_lifetime(copy entries)
  init(_ entries: Span<UInt8>) { self.entries = entries }

  /// Whether these can be the bytes of a list.
  var isWhole: Bool { entries.count % Self.entryByteCount == 0 && entries.count <= Self.capacity }

  /// Returns an entry without its time.
  static func start(_ tokenID: TokenID, _ issuer: KeyID) -> ByteBuffer<32> {
    var start = ByteBuffer<32>()
    do throws(EncodingFault) {
      try start.append(tokenID.bytes)
      try start.append(issuer.bytes)
    } catch { return start }
    return start
  }

  /// Returns whether there is an entry that begins with these bytes.
  @inline(never)
  func contains(_ start: Span<UInt8>) -> Bool {
    let first = start[0]
    var rest = entries
    while rest.count > 0 {
      if rest[0] == first, rest.extracting(first: start.count).elementsEqual(start) { return true }
      rest = rest.extracting(droppingFirst: Self.entryByteCount)
    }
    return false
  }

  /// Calls `body` with each entry whose time is later than `clockFloor`, in Unix seconds.
  func forEach(
    after clockFloor: UInt64, _ body: (Span<UInt8>) throws(EncodingFault) -> Void
  ) throws(EncodingFault) {
    var floor = ByteBuffer<8>()
    try floor.append(bigEndian: clockFloor)
    for place in stride(from: 0, to: entries.count, by: Self.entryByteCount) {
      let entry = entries.extracting(place..<place + Self.entryByteCount)
      if floor.bytes.precedes(entry.extracting(droppingFirst: Self.untilOffset)) { try body(entry) }
    }
  }
}
