// The owner's tools change a microcontroller's store, never the microcontroller itself.
#if !hasFeature(Embedded)
import HoldfastCore

/// The owner's access to a device's store while the device does not run. The caller first checks that a change is allowed.
/// Each change is one transaction, and audited.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// The number of the device's starts.
  package var bootCount: UInt64 { state.bootCount }
  /// The number of tokens' use counts and nonces in the store.
  package var keptCount: Int { index.keptCount }
  /// The number of users.
  package var userCount: Int { index.userCount }

  /// The most users that the store has room for.
  package static var userLimit: Int { Limit.users.microcontroller }
  /// The most of the owner's codes that the store has room for.
  package static var codeLimit: Int { Limit.ownerCodes.microcontroller }

  /// The slot of the journal that is in force, 1 or 2, the bytes of it that are used, and its length.
  package var slotUse: (number: Int, usedByteCount: Int, byteCount: Int) {
    (
      journal.slot == FlashLayout.slots.first ? 1 : 2, journal.end - journal.slot, FlashLayout.slotByteCount
    )
  }

  /// Returns whether the store has room for the generation floor of each of `issuers`, in addition to the floors of other
  /// keys.
  ///
  /// - Throws: `DeviceFault.store` if a floor cannot be read.
  package func canKeepFloors(of issuers: borrowing IssuerTable) throws(DeviceFault) -> Bool {
    var count = issuers.count
    do throws(EncodingFault) {
      for place in index.generations.indices where index.generations[place] != 0 {
        if issuers[try generation(index.generations[place]).keyID] == nil { count += 1 }
      }
    } catch { throw .store }
    return count <= index.generations.count
  }

  /// Raises the clock floor, in Unix seconds. Raising it is final: records that expire at or below it are dropped.
  ///
  /// - Throws: `DeviceFault.store` if `floor` is below the current floor, or cannot be recorded.
  package mutating func raiseClockFloor(to floor: UInt64, realClock: UInt64?) throws(DeviceFault) {
    var next = state
    guard floor >= next.clockFloor else { throw .store }
    let event = AuditEvent.clockFloorMoved(from: next.clockFloor, to: floor)
    next.clockFloor = floor
    let state = next
    try record { (store: inout Self) throws(EncodingFault) in
      try state.encode(into: &store.draft)
      try store.draft(event, realClock: realClock)
    }
  }

  /// Raises the generation floor of a key. `realClock` is in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if `floor` is below the current floor, if there is no room for it, or if it cannot be recorded.
  package mutating func raiseGenerationFloor(
    of keyID: KeyID, to floor: UInt64, realClock: UInt64?
  ) throws(DeviceFault) {
    try record { (store: inout Self) throws(EncodingFault) in
      let from = try store.generationFloor(of: keyID)
      guard floor >= from else { throw .unexpected }
      try store.draftGeneration(floor, of: keyID)
      try store.draft(.generationFloorMoved(keyID, from: from, to: floor), realClock: realClock)
    }
  }

  /// Returns the user at a place below `userLimit`; nil if the place is free.
  ///
  /// - Throws: `DeviceFault.store` if the user cannot be read.
  public func user(at place: Int) throws(DeviceFault) -> (name: BoundedText<32>, record: UserRecord)? {
    guard index.users[place].item != 0 else { return nil }
    do throws(EncodingFault) {
      let user = try UserItem(try journal.item(index.users[place].item))
      return (user.name, user.record)
    } catch { throw .store }
  }

  /// Adds a user whose secrets, of 1 to 64 bytes, were made elsewhere. The user replaces one of the same name. `secret` is
  /// called for the purpose of each account.
  ///
  /// - Throws: `DeviceFault.store` if there is no room for the user, or the user cannot be recorded.
  package mutating func addUser(
    _ name: BoundedText<32>, _ accounts: ByPurpose<CodeAccount>, realClock: UInt64?,
    secret: (CodePurpose) -> CodeSecret
  ) throws(DeviceFault) {
    var user = UserRecord(id: 0, lastAccepted: time(realClock))
    user.accounts = accounts
    let added = user
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draftRemoval(of: name)
      let id = try store.draftUser(name, added)
      for purpose in CodePurpose.given where accounts[purpose] != nil {
        try store.draft(secret: secret(purpose).bytes, purpose, of: id)
      }
      try store.draft(.userAdded(name), realClock: realClock)
    }
  }

  /// Removes a user and the owner's codes for them. Returns whether there was a user or a code with that name.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or the removal cannot be recorded.
  package mutating func removeUser(_ name: BoundedText<32>, realClock: UInt64?) throws(DeviceFault) -> Bool {
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

  /// Locks a user until a time, in Unix seconds, and withdraws the owner's codes for them. Returns whether there is such a user.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or the lock cannot be recorded.
  package mutating func lockUser(
    _ name: BoundedText<32>, until: UInt64, realClock: UInt64?
  ) throws(DeviceFault) -> Bool {
    let found: UserItem?
    do throws(EncodingFault) { found = try findUser(name) } catch { throw .store }
    guard var user = found else { return false }
    user.record.lockedUntil = until
    let locked = user
    try record { (store: inout Self) throws(EncodingFault) in
      try locked.encode(into: &store.draft)
      for place in store.index.codes.indices where store.index.codes[place] != 0 {
        let code = try CodeItem.decode(try store.journal.item(store.index.codes[place]))
        if code.user == name { try store.draftCodeGone(code.id) }
      }
      try store.draft(.userLocked(name, until: until), realClock: realClock)
    }
    return true
  }

  /// Records one of the owner's codes. It replaces a code for the same user and purpose, and codes that have expired are
  /// dropped. Returns false, and records nothing, if ``codeLimit`` other codes are pending.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or the code cannot be recorded.
  package mutating func issueCode(
    _ purpose: OneUseCode.Purpose, key: borrowing Secret<32>, user: BoundedText<32>, lifetimeSeconds: UInt64,
    methods: ByPurpose<CodeMethod>, realClock: UInt64?
  ) throws(DeviceFault) -> Bool {
    let now = time(realClock)
    var waitingCount = 0
    do throws(EncodingFault) {
      for place in index.codes.indices where index.codes[place] != 0 {
        if try !isReplaced(at: place, by: purpose, user, now: now) { waitingCount += 1 }
      }
    } catch { throw .store }
    guard waitingCount < Self.codeLimit else { return false }
    let code = OneUseCodeRecord(
      id: state.nextCodeID, purpose: purpose, key: key.copy(), user: user, expires: now + lifetimeSeconds,
      methods: methods)
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
#endif
