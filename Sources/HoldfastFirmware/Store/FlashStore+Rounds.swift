import HoldfastCore

/// The transaction in which a round is judged. It reads and writes the same facts as the ledger on Linux.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Reads the facts about a round, calls `decide`, and records the decision and its audit entry in one transaction. A
  /// repetition is not recorded, and a decision that changes nothing is counted in memory.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or written. The decision must then not be acted upon.
  @inline(never)
  public mutating func record(
    _ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide
  ) throws(DeviceFault) {
    index.dropOutdated(clockFloor: state.clockFloor)
    var snapshot = LedgerSnapshot(clockFloor: state.clockFloor)
    snapshot.isAuditLogFull = isAuditLogFull
    do throws(EncodingFault) { try read(&snapshot, for: round) } catch { throw .store }
    decide(round, snapshot, &decision)
    guard !decision.isRepetition else { return }
    if keeping != .newest, decision.status == .accepted || decision.notice.isAuditLogFull {
      // A prover that is refused because the log is full may carry it home.
      decision.notice.hasAuditPage = round.requestNumber != nil && round.compatibilityNonce == nil
    }
    let isRecorded = decision.isRecorded(over: snapshot, round)
    if !isRecorded || snapshot.isAuditLogFull { denied.add(round, decision.status) }
    guard isRecorded else { return }
    try record { (store: inout Self) throws(EncodingFault) in try store.draft(decision, on: round, snapshot) }
    try tellBulletins(in: &decision, on: round)
  }

  private mutating func read(_ snapshot: inout LedgerSnapshot, for round: borrowing AppraisalInput)
    throws(EncodingFault)
  {
    if let keyID = round.verifyingKey {
      snapshot.isIssuerTrusted = issuers.find(keyID, in: journal.bytes) != nil
      snapshot.generationFloor = try generationFloor(of: keyID)
      snapshot.isRevoked = try isRevoked(round.tokenID, of: keyID)
    }
    if let name = round.codeUser { snapshot.user = try findUser(name)?.record }
    if round.maximumUses != nil || round.compatibilityNonce != nil { try readKept(&snapshot, for: round) }
    try readRequest(&snapshot, for: round)
  }

  /// Reads the records of uses and nonces, and the room for more.
  @inline(never)
  private func readKept(_ snapshot: inout LedgerSnapshot, for round: borrowing AppraisalInput) throws(EncodingFault) {
    snapshot.replayRoom = ReplayRoom(
      recordCount: index.keptCount, capacity: index.kept.count, nonceQuota: Self.nonceQuota)
    if round.maximumUses != nil, let known = try findKept(ReplayRecord(round, .uses(0))),
      case .uses(let count) = known.content
    {
      snapshot.uses = UseRecord(count: count, expires: known.expires)
    }
    if let nonce = round.compatibilityNonce {
      snapshot.isNonceUsed = try findKept(ReplayRecord(round, .nonce(nonce))) != nil
      snapshot.nonceCount = try nonceCount(of: ReplayRecord(round, .nonce(nonce)))
    }
  }

  /// Drafts the changes that a decision makes. Floors only rise.
  private mutating func draft(
    _ decision: borrowing Decision, on round: borrowing AppraisalInput, _ snapshot: borrowing LedgerSnapshot
  ) throws(EncodingFault) {
    if decision.clockFloor > state.clockFloor {
      var next = state
      next.clockFloor = decision.clockFloor
      try next.encode(into: &draft)
    }
    if let floor = decision.generationFloor, floor > snapshot.generationFloor, let keyID = round.verifyingKey {
      try draftGeneration(floor, of: keyID)
    }
    if let user = decision.user, let name = round.codeUser {
      try UserItem(name: name, record: user).encode(into: &draft)
    }
    if let uses = decision.uses {
      var record = ReplayRecord(round, .uses(uses.count))
      record.expires = uses.expires
      try record.encode(into: &draft)
    }
    if decision.keepsNonce, let nonce = round.compatibilityNonce {
      try ReplayRecord(round, .nonce(nonce)).encode(into: &draft)
    }
    if let request = decision.request { try draftRequest(request, of: round) }
    // While the codes are still to be compared, no entry is made: the round is judged again with the result, and the audit
    // log keeps that decision. While the log is full, each round is denied, and must not push out another entry.
    if decision.attempt == nil, !snapshot.isAuditLogFull {
      let event = AuditEvent.round(AuditedRound(round, status: decision.status))
      try draft(event, realClock: max(decision.clockFloor, round.realClock ?? 0))
    }
  }

  /// Drafts a generation floor. Throws if there is no room for it, so the round is denied: a floor without a place in the
  /// index would make the journal damaged.
  package mutating func draftGeneration(_ floor: UInt64, of keyID: KeyID) throws(EncodingFault) {
    let place = index.generations[try placeForGeneration(of: keyID)]
    var numbers = EncodedBulletinList()
    if place != 0 { try numbers.buffer.append(try journal.bulletinNumbers(place)) }
    try draft.begin(numbers.buffer.count == 0 ? .generation : .bulletins)
    try draft.appendCBOR(bytes: keyID.bytes)
    try draft.appendCBOR(unsigned: floor)
    try draft.append(numbers.buffer.bytes)
  }

  /// The most nonces that are kept of one token.
  private static var nonceQuota: Int { Limit.nonces.microcontroller }

  private func nonceCount(of wanted: ReplayRecord) throws(EncodingFault) -> Int {
    let tag = ReplayIndexEntry.tag(of: wanted.tokenID)
    var count = 0
    for position in index.kept.indices where index.kept[position].item != 0 && index.kept[position].tag == tag {
      let kept = try ReplayRecord(try journal.item(index.kept[position].item))
      if case .nonce = kept.content, kept.verifyingKey == wanted.verifyingKey, kept.tokenID == wanted.tokenID {
        count += 1
      }
    }
    return count
  }

  private func findKept(_ wanted: ReplayRecord) throws(EncodingFault) -> ReplayRecord? {
    guard let found = try keptIndex(wanted) else { return nil }
    return try ReplayRecord(try journal.item(index.kept[found].item))
  }

  private func keptIndex(_ wanted: ReplayRecord) throws(EncodingFault) -> Int? {
    let tag = ReplayIndexEntry.tag(of: wanted.tokenID)
    for position in index.kept.indices where index.kept[position].item != 0 && index.kept[position].tag == tag {
      if try ReplayRecord(try journal.item(index.kept[position].item)).isAbout(theSameAs: wanted) { return position }
    }
    return nil
  }

  package mutating func put(_ place: UInt16, _ kept: ReplayRecord) throws(EncodingFault) {
    index.dropOutdated(clockFloor: state.clockFloor)
    var position = try keptIndex(kept)
    if position == nil {
      for free in index.kept.indices where index.kept[free].item == 0 {
        position = free
        break
      }
    }
    guard let position else { throw .unexpected }
    index.kept[position] = ReplayIndexEntry(item: place, kept)
  }

  /// Returns the highest generation that was accepted from a key; 0 if none was.
  ///
  /// - Throws: an `EncodingFault` if the floor cannot be read.
  package func generationFloor(of keyID: KeyID) throws(EncodingFault) -> UInt64 {
    guard let position = try generationIndex(of: keyID) else { return 0 }
    return try generation(index.generations[position]).floor
  }

  package mutating func putGeneration(_ place: UInt16, of keyID: KeyID) throws(EncodingFault) {
    index.generations[try placeForGeneration(of: keyID)] = place
  }

  package func placeForGeneration(of keyID: KeyID) throws(EncodingFault) -> Int {
    if let position = try generationIndex(of: keyID) { return position }
    for free in index.generations.indices where index.generations[free] == 0 { return free }
    throw .unexpected
  }

  package func generationIndex(of keyID: KeyID) throws(EncodingFault) -> Int? {
    for position in index.generations.indices where index.generations[position] != 0 {
      if try generation(index.generations[position]).keyID == keyID { return position }
    }
    return nil
  }

  package func generation(_ place: UInt16) throws(EncodingFault) -> (keyID: KeyID, floor: UInt64) {
    var reader = CBORReader(try journal.item(place))
    _ = try reader.itemKind()
    return (try reader.fixedBytes(), try reader.unsigned())
  }
}

extension ReplayRecord {
  fileprivate init(_ round: borrowing AppraisalInput, _ content: Content) {
    self.init(
      verifyingKey: round.verifyingKey, tokenID: round.tokenID, expires: round.expires, content: content)
  }
}
