import HoldfastCore

/// What the owner of a device does with what it keeps, while it does not run. What may be done is for the caller to look at
/// first; each change is one transaction, and audited.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// How often the device started.
  public var bootCount: UInt64 { state.bootCount }
  /// How many tokens' uses and nonces are kept.
  public var keptCount: Int { index.keptCount }
  public var userCount: Int { index.userCount }

  /// How many users, and how many of the owner's codes, there may be.
  public static var userLimit: Int { 16 }
  public static var codeLimit: Int { 16 }

  /// Which slot of the journal is in force, 1 or 2, and how much of it is used.
  public var slotUse: (number: Int, usedByteCount: Int, byteCount: Int) {
    (
      journal.slot == FlashLayout.slots.first ? 1 : 2, journal.end - journal.slot, FlashLayout.slotByteCount
    )
  }

  /// Whether there is a place for the generation floor of each of `issuers`, beside those that are kept of other keys.
  public func canKeepFloors(of issuers: borrowing IssuerTable) throws(StoreFailure) -> Bool {
    var count = issuers.count
    do throws(EncodingFault) {
      for place in index.generations.indices where index.generations[place] != 0 {
        if issuers[try generation(index.generations[place]).keyID] == nil { count += 1 }
      }
    } catch { throw StoreFailure() }
    return count <= index.generations.count
  }

  /// Writes down something that was done elsewhere, in a transaction of its own.
  public mutating func note(_ event: AuditEvent, realClock: UInt64?) throws(StoreFailure) {
    try record { (store: inout Self) throws(EncodingFault) in try store.draft(event, realClock: realClock) }
  }

  /// Moves the clock floor, in Unix seconds. It must not be below where it is: what it has passed is forgotten.
  public mutating func raiseClockFloor(to floor: UInt64, realClock: UInt64?) throws(StoreFailure) {
    var next = state
    guard floor >= next.clockFloor else { throw StoreFailure() }
    let event = AuditEvent.clockFloorMoved(from: next.clockFloor, to: floor)
    next.clockFloor = floor
    let state = next
    try record { (store: inout Self) throws(EncodingFault) in
      try state.encode(into: &store.draft)
      try store.draft(event, realClock: realClock)
    }
  }

  /// Moves the generation floor of a key, which must not be below where it is either.
  public mutating func raiseGenerationFloor(
    of keyID: KeyID, to floor: UInt64, realClock: UInt64?
  ) throws(StoreFailure) {
    try record { (store: inout Self) throws(EncodingFault) in
      let from = try store.generationFloor(of: keyID)
      guard floor >= from else { throw .unexpected }
      try store.draftGeneration(floor, of: keyID)
      try store.draft(.generationFloorMoved(keyID, from: from, to: floor), realClock: realClock)
    }
  }

  /// The user at a place below ``userLimit``; nil for a free one.
  public func user(at place: Int) throws(StoreFailure) -> (name: BoundedText<32>, record: UserRecord)? {
    guard index.users[place].item != 0 else { return nil }
    do throws(EncodingFault) {
      let user = try UserItem(try journal.item(index.users[place].item))
      return (user.name, user.record)
    } catch { throw StoreFailure() }
  }

  /// Adds a user whose secrets, of 1 to 64 bytes, were made elsewhere, in the place of one of that name. The secret of an
  /// account that is nil is not looked at.
  public mutating func addUser(
    _ name: BoundedText<32>, otp: CodeAccount?, otpSecret: Span<UInt8>, seal: CodeAccount?, sealSecret: Span<UInt8>,
    realClock: UInt64?
  ) throws(StoreFailure) {
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draftRemoval(of: name)
      let id = try store.draftUser(name, otp: otp, seal: seal, realClock: realClock)
      if otp != nil { try store.draft(secret: otpSecret, .otp, of: id) }
      if seal != nil { try store.draft(secret: sealSecret, .seal, of: id) }
      try store.draft(.userAdded(name), realClock: realClock)
    }
  }

  /// Forgets a user and the owner's codes for them; says whether there was anything of that name.
  public mutating func removeUser(_ name: BoundedText<32>, realClock: UInt64?) throws(StoreFailure) -> Bool {
    var isKnown = try isKnown(name)
    for place in index.codes.indices where index.codes[place] != 0 {
      if try code(at: place).user == name { isKnown = true }
    }
    guard isKnown else { return false }
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draftRemoval(of: name)
      try store.draft(.userRemoved(name), realClock: realClock)
    }
    return true
  }

  /// Keeps one of the owner's codes, in the place of one of that user for the same, and drops those that are out of time; false
  /// where as many wait as there may be.
  public mutating func issueCode(
    _ purpose: OneUseCode.Purpose, key: borrowing Secret<32>, user: BoundedText<32>, lifetimeSeconds: UInt64,
    otp: CodeMethod?, seal: CodeMethod?, realClock: UInt64?
  ) throws(StoreFailure) -> Bool {
    let now = time(realClock)
    var waitingCount = 0
    do throws(EncodingFault) {
      for place in index.codes.indices where index.codes[place] != 0 {
        if try !isReplaced(at: place, by: purpose, user, now: now) { waitingCount += 1 }
      }
    } catch { throw StoreFailure() }
    guard waitingCount < Self.codeLimit else { return false }
    let code = OneUseCodeRecord(
      id: state.nextCodeID, purpose: purpose, key: key.copy(), user: user, expires: now + lifetimeSeconds, otp: otp,
      seal: seal)
    try record { (store: inout Self) throws(EncodingFault) in
      for place in store.index.codes.indices where store.index.codes[place] != 0 {
        guard try store.isReplaced(at: place, by: purpose, user, now: now) else { continue }
        try store.draftCodeGone(try CodeItem.decode(try store.journal.item(store.index.codes[place])).id)
      }
      var next = store.state
      next.nextCodeID += 1
      try next.encode(into: &store.draft)
      try CodeItem.encode(code, into: &store.draft)
      try store.draft(.codeIssued(purpose, user), realClock: realClock)
    }
    return true
  }

  private func isReplaced(
    at place: Int, by purpose: OneUseCode.Purpose, _ user: BoundedText<32>, now: UInt64
  ) throws(EncodingFault) -> Bool {
    let code = try CodeItem.decode(try journal.item(index.codes[place]))
    return code.expires <= now || (code.user == user && code.purpose == purpose)
  }
}
