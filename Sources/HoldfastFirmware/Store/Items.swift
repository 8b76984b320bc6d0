import HoldfastCore

/// The kinds of items. A transaction is a sequence of CBOR arrays that each begin with one of these numbers.
package enum ItemKind: UInt64 {
  /// `[1, clock floor, boot count, next user id, next code id]`: the state of the store.
  case state = 1
  /// `[2, count, head]`: the audit chain before the first entry of the slot.
  case auditBase = 2
  /// `[3, entry]`: see ``AuditEntry``.
  case auditEntry = 3
  /// `[4, kid, floor]`: the generation floor of a key.
  case generation = 4
  /// `[5, kid / null, jti, expires, count]`: the uses of a token.
  case uses = 5
  /// `[6, kid / null, jti, expires, nonce]`: a compatibility nonce.
  case nonce = 6
  /// `[7, id, name, …]`: see ``UserItem``.
  case user = 7
  /// `[8, user id, purpose, secret]`: a secret of a user.
  case secret = 8
  /// `[9, id]`: the removal of a user and of the user's secrets.
  case userRemoved = 9
  /// `[10, id, purpose, key, user, expires, otp / null, seal / null]`: one of the owner's codes.
  case code = 10
  /// `[11, id]`: the removal of one of the owner's codes.
  case codeRemoved = 11
  /// `[12, jti, place, …]`: see ``RequestItem``.
  case request = 12
  /// `[13, place, outcome]`: the outcome of the request with the highest number at that place.
  case outcome = 13
  /// `[14, kid, floor, [[audience, number] …]]`: in place of ``generation``, for a key of which the device has taken bulletins.
  case bulletins = 14
  /// `[15, entries]`: see ``RevokedTokens``.
  case revoked = 15
  /// `[16, count, bytes]`: the entries up to `count` were acknowledged by the home of the audit log; those after them that were written
  /// before this item take that many bytes, as ``FlashStore/auditByteCount`` counts them, at most those of a slot.
  case acknowledged = 16

  /// The number of elements of such an item, including the kind.
  var elementCount: Int {
    switch self {
    case .auditEntry, .userRemoved, .codeRemoved, .revoked: 2
    case .auditBase, .generation, .outcome, .acknowledged: 3
    case .secret, .bulletins: 4
    case .state, .uses, .nonce: 5
    case .request: 8
    case .code: 6 + CodePurpose.givenCount
    case .user: 9 + CodePurpose.givenCount
    }
  }
}

/// The most elements of an item or of an array in an item.
private let longestItem = 11

extension ByteSink where Self: ~Copyable {
  package mutating func begin(_ kind: ItemKind) throws(Failure) {
    try appendCBOR(array: kind.elementCount)
    try appendCBOR(unsigned: kind.rawValue)
  }

  package mutating func appendOptional(_ keyID: KeyID?) throws(Failure) {
    guard let keyID else { return try appendCBORNull() }
    try appendCBOR(bytes: keyID.bytes)
  }

  package mutating func appendOptional(_ method: CodeMethod?) throws(Failure) {
    guard let method else { return try appendCBORNull() }
    try method.encode(into: &self)
  }
}

extension CBORReader {
  /// Reads the kind of an item that has as many elements as its kind.
  package mutating func itemKind() throws(EncodingFault) -> ItemKind {
    let count = try arrayHead()
    guard let kind = ItemKind(rawValue: try unsigned()), count == kind.elementCount else { throw .unexpected }
    return kind
  }

  /// Skips one item of any kind.
  @inline(never)
  package mutating func skip() throws(EncodingFault) {
    var pending = 1
    while pending > 0 {
      pending -= 1
      switch try nextMajorType() {
      case .unsigned, .negative: _ = try integer()
      case .bytes: _ = try byteString()
      case .text: _ = try textString()
      case .array:
        let count = try arrayHead()
        guard count <= longestItem else { throw .unexpected }
        pending += count
      case .map, .tag: throw .unexpected
      case .simple: guard null() else { throw .unexpected }
      }
    }
  }

  package mutating func optionalKeyID() throws(EncodingFault) -> KeyID? {
    if null() { return nil }
    let keyID: KeyID = try fixedBytes()
    return keyID
  }

  package mutating func optionalMethod() throws(EncodingFault) -> CodeMethod? {
    if null() { return nil }
    return try CodeMethod(&self)
  }

  package mutating func name() throws(EncodingFault) -> BoundedText<32> {
    guard let name = BoundedText<32>(try textString()) else { throw .unexpected }
    return name
  }
}

/// The items of a transaction: drafting and indexing them.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Drafts an audit entry with the next number, at most one in a transaction. Its time is the later of the clock floor and
  /// `realClock`, in Unix seconds.
  package mutating func draft(_ event: AuditEvent, realClock: UInt64? = nil) throws(EncodingFault) {
    try draft.begin(.auditEntry)
    let start = draft.count
    try AuditEntry(sequence: audit.count + 1, time: time(realClock), event: event).encode(into: &draft)
    try draft.wrapCBOR(from: start)
  }

  /// The device's time: the later of floor and real clock, in Unix seconds.
  package func time(_ realClock: UInt64?) -> UInt64 {
    max(state.clockFloor, realClock ?? 0)
  }

  /// Updates the index and the state from the items of a transaction.
  package mutating func absorb(_ transaction: Range<Int>) throws(StoreFault) {
    var position = transaction.lowerBound
    while position < transaction.upperBound {
      let place = UInt16(position - journal.slot)
      do throws(EncodingFault) {
        position += try journal.item(place).count
        try absorb(place)
      } catch { throw .damaged }
    }
    // The last item reaches into the padding or the checksum.
    guard position == transaction.upperBound else { throw .damaged }
  }

  private mutating func absorb(_ place: UInt16) throws(EncodingFault) {
    var reader = CBORReader(try journal.item(place))
    switch try reader.itemKind() {
    case .state:
      state = try StoreState(&reader)
    case .auditBase:
      audit = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    case .auditEntry:
      let entry = try reader.byteString()
      let (sequence, time) = try AuditEntry.head(of: entry)
      // A gap in the numbers means that a transaction that counted once no longer does.
      guard sequence == audit.count + 1 else { throw .unexpected }
      newestEntryTime = time
      do throws(CryptographyFailure) {
        try audit.advance(over: entry, using: &cryptography)
      } catch { throw .unexpected }
      if audit.count > acknowledged { auditByteCount += Self.transactionByteCount(try journal.item(place).count) }
    case .acknowledged:
      acknowledged = try reader.unsigned()
      // More would not be in the slot, and could overflow with the entries that follow.
      auditByteCount = Int(try reader.unsigned(within: 0...UInt64(FlashLayout.slotByteCount)))
    case .generation, .bulletins: try putGeneration(place, of: try reader.fixedBytes())
    case .revoked:
      guard RevokedTokens(try reader.byteString()).isWhole else { throw .unexpected }
      index.revoked = place
    case .uses, .nonce: try put(place, try ReplayRecord(try journal.item(place)))
    case .user: try putUser(place, id: try reader.unsigned())
    case .secret: try putSecret(place, of: try reader.unsigned(), try reader.purpose())
    case .userRemoved: index.users[try userIndex(id: try reader.unsigned())] = UserPlace()
    case .code: index.codes[try freeCodeIndex()] = place
    case .request:
      let _: TokenID = try reader.fixedBytes()
      let position = try reader.requestPlace()
      (index.requests[position], index.outcomes[position]) = (place, nil)
    case .outcome: index.outcomes[try reader.requestPlace()] = try reader.outcome()
    case .codeRemoved: index.codes[try codeIndex(id: try reader.unsigned())] = 0
    }
  }
}

/// A replay record, kept until its token expires: the number of its uses, or a compatibility nonce that came with it.
package struct ReplayRecord: Equatable {
  /// The key that signed the token; nil for an unsigned one.
  package let verifyingKey: KeyID?
  package let tokenID: TokenID
  package var expires: UInt64
  package var content: Content

  package enum Content: Equatable {
    case uses(UInt64)
    case nonce(Nonce)
  }

  /// Returns whether both are the uses of one token, or the same nonce with one token.
  package func isAbout(theSameAs other: ReplayRecord) -> Bool {
    guard verifyingKey == other.verifyingKey, tokenID == other.tokenID else { return false }
    switch (content, other.content) {
    case (.uses, .uses): return true
    case (.nonce(let nonce), .nonce(let otherNonce)): return nonce == otherNonce
    default: return false
    }
  }
}

extension ReplayRecord {
  package init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    let kind = try reader.itemKind()
    verifyingKey = try reader.optionalKeyID()
    tokenID = try reader.fixedBytes()
    expires = try reader.unsigned()
    switch kind {
    case .uses: content = .uses(try reader.unsigned())
    case .nonce: content = .nonce(try reader.fixedBytes())
    default: throw .unexpected
    }
    try reader.finish()
  }

  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    switch content {
    case .uses(let count):
      try encodeToken(.uses, into: &sink)
      try sink.appendCBOR(unsigned: count)
    case .nonce(let nonce):
      try encodeToken(.nonce, into: &sink)
      try sink.appendCBOR(bytes: nonce.bytes)
    }
  }

  private func encodeToken<Sink: ByteSink & ~Copyable>(
    _ kind: ItemKind, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.begin(kind)
    try sink.appendOptional(verifyingKey)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(unsigned: expires)
  }
}
