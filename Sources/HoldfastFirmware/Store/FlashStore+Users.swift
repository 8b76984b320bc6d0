import HoldfastCore

/// The users, their secrets, and the owner's codes for them.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Returns the user of that name; nil if there is none.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read.
  public mutating func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord? {
    do throws(EncodingFault) { return try findUser(name)?.record } catch { throw .store }
  }

  package func isKnown(_ name: BoundedText<32>) throws(DeviceFault) -> Bool {
    do throws(EncodingFault) {
      guard case .some = try findUser(name) else { return false }
      return true
    } catch { throw .store }
  }

  /// Returns a user's secret for one kind of codes, at most 64 bytes; nil if there is no such user or secret.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read.
  public mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret? {
    do throws(EncodingFault) {
      guard let position = try knownUserIndex(id: userID) else { return nil }
      let place = index.users[position].secrets[Int(purpose.rawValue) - 1]
      guard place != 0 else { return nil }
      var reader = CBORReader(try journal.item(place))
      _ = try reader.itemKind()
      _ = try reader.unsigned()
      _ = try reader.purpose()
      var secret = CodeSecret()
      try secret.append(try reader.byteString())
      return secret
    } catch { throw .store }
  }

  /// Returns one of the owner's codes, counted from 0 without gaps; nil past the last one.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read.
  public mutating func oneUseCode(at wanted: Int) throws(DeviceFault) -> OneUseCodeRecord? {
    var passed = 0
    for position in index.codes.indices where index.codes[position] != 0 {
      if passed == wanted { return try code(at: position) }
      passed += 1
    }
    return nil
  }

  /// Creates the user of an activation code and uses the code up, in one transaction. Returns false if the code is not
  /// pending, or if `decide` returns nil. `realClock` is in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or written.
  public mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool {
    guard let facts = try facts(ofCode: codeID), let user = decide(facts) else { return false }
    let name = facts.code.user
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draftRemoval(of: name)
      let id = try store.draftUser(name, user)
      for purpose in CodePurpose.given where user.accounts[purpose] != nil {
        try store.draft(secrets, purpose, of: id)
      }
      try store.draft(secrets, .host, of: id)
      try store.draft(.userActivated(name), realClock: realClock)
    }
    return true
  }

  /// Unlocks the user of an unlocking code and uses the code up, in one transaction. Returns false if the code is not
  /// pending, or if `decide` returns nil. `realClock` is in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if the store cannot be read or written.
  public mutating func unlock(
    _ codeID: UInt64, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool {
    guard let facts = try facts(ofCode: codeID), let user = decide(facts) else { return false }
    let unlocked = UserItem(name: facts.code.user, record: user)
    try record { (store: inout Self) throws(EncodingFault) in
      try unlocked.encode(into: &store.draft)
      try store.draftCodeGone(codeID)
      try store.draft(.userUnlocked(unlocked.name), realClock: realClock)
    }
    return true
  }

  private mutating func facts(ofCode id: UInt64) throws(DeviceFault) -> CodeFacts? {
    for position in index.codes.indices where index.codes[position] != 0 {
      let code = try code(at: position)
      guard code.id == id else { continue }
      let user = try user(named: code.user)
      return CodeFacts(
        code: code, user: user, userCount: index.userCount, userCapacity: index.users.count,
        clockFloor: state.clockFloor)
    }
    return nil
  }

  package func code(at position: Int) throws(DeviceFault) -> OneUseCodeRecord {
    do throws(EncodingFault) { return try CodeItem.decode(try journal.item(index.codes[position])) } catch {
      throw .store
    }
  }
}

/// The journal items of a user.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Drafts a new user without secrets, under the next free id, which it returns.
  package mutating func draftUser(_ name: BoundedText<32>, _ record: UserRecord) throws(EncodingFault) -> UInt64 {
    var user = record
    user.id = state.nextUserID
    var next = state
    next.nextUserID += 1
    try next.encode(into: &draft)
    try UserItem(name: name, record: user).encode(into: &draft)
    return user.id
  }

  package mutating func draft(
    _ secrets: borrowing UserSecrets, _ purpose: CodePurpose, of userID: UInt64
  ) throws(EncodingFault) {
    try secrets.withBytes(of: purpose) { (bytes) throws(EncodingFault) in
      try draft(secret: bytes, purpose, of: userID)
    }
  }

  package mutating func draft(secret: Span<UInt8>, _ purpose: CodePurpose, of userID: UInt64) throws(EncodingFault) {
    try draft.begin(.secret)
    try draft.appendCBOR(unsigned: userID)
    try draft.appendCBOR(unsigned: UInt64(purpose.rawValue))
    try draft.appendCBOR(bytes: secret)
  }

  /// Drafts the removal of the user of that name, if there is one, and of the owner's codes for the name.
  package mutating func draftRemoval(of name: BoundedText<32>) throws(EncodingFault) {
    if let user = try findUser(name) {
      try draft.begin(.userRemoved)
      try draft.appendCBOR(unsigned: user.record.id)
    }
    for position in index.codes.indices where index.codes[position] != 0 {
      let code = try CodeItem.decode(try journal.item(index.codes[position]))
      if code.user == name { try draftCodeGone(code.id) }
    }
  }

  package mutating func draftCodeGone(_ id: UInt64) throws(EncodingFault) {
    try draft.begin(.codeRemoved)
    try draft.appendCBOR(unsigned: id)
  }

  package func findUser(_ name: BoundedText<32>) throws(EncodingFault) -> UserItem? {
    for position in index.users.indices where index.users[position].item != 0 {
      let user = try UserItem(try journal.item(index.users[position].item))
      if user.name == name { return user }
    }
    return nil
  }

  private func knownUserIndex(id: UInt64) throws(EncodingFault) -> Int? {
    for position in index.users.indices where index.users[position].item != 0 {
      var reader = CBORReader(try journal.item(index.users[position].item))
      _ = try reader.itemKind()
      if try reader.unsigned() == id { return position }
    }
    return nil
  }

  package func userIndex(id: UInt64) throws(EncodingFault) -> Int {
    guard let position = try knownUserIndex(id: id) else { throw .unexpected }
    return position
  }

  package mutating func putUser(_ place: UInt16, id: UInt64) throws(EncodingFault) {
    if let known = try knownUserIndex(id: id) {
      index.users[known].item = place
      return
    }
    for free in index.users.indices where index.users[free].item == 0 {
      index.users[free] = UserPlace(item: place)
      return
    }
    throw .unexpected
  }

  package mutating func putSecret(_ place: UInt16, of id: UInt64, _ purpose: CodePurpose) throws(EncodingFault) {
    index.users[try userIndex(id: id)].secrets[Int(purpose.rawValue) - 1] = place
  }

  package func freeCodeIndex() throws(EncodingFault) -> Int {
    for position in index.codes.indices where index.codes[position] == 0 { return position }
    throw .unexpected
  }

  package func codeIndex(id: UInt64) throws(EncodingFault) -> Int {
    for position in index.codes.indices where index.codes[position] != 0 {
      if try CodeItem.decode(try journal.item(index.codes[position])).id == id { return position }
    }
    throw .unexpected
  }
}

extension CBORReader {
  package mutating func purpose() throws(EncodingFault) -> CodePurpose {
    guard let purpose = CodePurpose(rawValue: UInt8(clamping: try unsigned())) else { throw .unexpected }
    return purpose
  }
}
