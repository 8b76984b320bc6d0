import HoldfastCore
import HoldfastOpenSSL
import TestSupport

import HoldfastFirmware

typealias TestStore = FlashStore<SimulatedFlash, OpenSSLCryptography>

/// All that a store must not forget.
struct StoreContents: Equatable {
  var clockFloor: UInt64
  var bootCount: UInt64
  var nextUserID: UInt64
  var audit: AuditChain
  /// The number of the last audit entry that the log's home has acknowledged.
  var acknowledged: UInt64
  /// Each as it stands in the journal: generations with numbers of bulletins, the list of revoked tokens, uses, nonces and request
  /// numbers that still count, users, secrets, codes.
  var items: Set<[UInt8]>
  /// The outcome of the request with the highest number at each place, if it is known.
  var outcomes: [Int: Status]
}

extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  func contents() throws -> StoreContents {
    var places: [UInt16] = [index.revoked]
    var outcomes: [Int: Status] = [:]
    for position in index.generations.indices { places.append(index.generations[position]) }
    for position in index.codes.indices { places.append(index.codes[position]) }
    for position in index.kept.indices where !index.kept[position].isOutdated(clockFloor: state.clockFloor) {
      places.append(index.kept[position].item)
    }
    for position in index.requests.indices where try !isOutdatedRequest(index.requests[position], in: journal.slot) {
      places.append(index.requests[position])
      outcomes[position] = index.outcomes[position]
    }
    for position in index.users.indices {
      places.append(index.users[position].item)
      for purpose in 0..<3 { places.append(index.users[position].secrets[purpose]) }
    }
    var items: Set<[UInt8]> = []
    for place in places where place != 0 {
      let item = try journal.item(place)
      items.insert(Array(item))
    }
    return StoreContents(
      clockFloor: state.clockFloor, bootCount: state.bootCount, nextUserID: state.nextUserID, audit: audit,
      acknowledged: acknowledged, items: items, outcomes: outcomes
    )
  }

  /// The entries that the audit log still holds, the oldest first, and whether they lead to the head of the chain.
  func auditEntries() throws -> (entries: [AuditEntry], isWhole: Bool) {
    var (entries, chain): ([AuditEntry], AuditChain) = ([], AuditChain())
    var crypto = OpenSSLCryptography()
    var cursor = journal.cursor
    while let transaction = try cursor.next(in: journal.flash) {
      var position = transaction.lowerBound
      while position < transaction.upperBound {
        let range = try journal.itemRange(at: position)
        position = range.upperBound
        let bytes = journal.bytes
        var reader = CBORReader(bytes.extracting(range))
        switch try reader.itemKind() {
        case .auditBase: chain = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
        case .auditEntry:
          let entry = try reader.byteString()
          try chain.advance(over: entry, using: &crypto)
          entries.append(try AuditEntry(entry))
        default: break
        }
      }
    }
    let isNumbered = zip(entries, entries.dropFirst()).allSatisfy { $0.sequence + 1 == $1.sequence }
    return (entries, isNumbered && chain == audit && entries.last?.sequence == audit.count)
  }
}

extension TestFirmware {
  func open(wordCount: Int? = nil) throws(StoreFault) -> TestStore {
    try FlashStore.open(flash.powered(wordCount: wordCount), using: OpenSSLCryptography())
  }

  /// The memory of a device that starts now; nil if it denies everything.
  func contents() -> StoreContents? {
    do { return try open().contents() } catch { return nil }
  }
}

/// The changes that a device's owner makes.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Goes on with an audit chain that began elsewhere.
  mutating func goOn(from audit: AuditChain) throws {
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draft.begin(.auditBase)
      try store.draft.appendCBOR(unsigned: audit.count)
      try store.draft.appendCBOR(bytes: audit.head.bytes)
    }
  }

  mutating func add(
    _ user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, secret: [UInt8], realClock: UInt64? = nil
  ) throws {
    let key: Secret<32> = TestSupport.secret(secret)
    try record { (store: inout Self) throws(EncodingFault) in
      try store.draftRemoval(of: user)
      var record = UserRecord(id: 0, lastAccepted: store.time(realClock))
      record.accounts = ByPurpose(otp: otp, seal: seal).map { CodeAccount(method: $0) }
      let id = try store.draftUser(user, record)
      try key.withBytes { (secret: Span<UInt8>) throws(EncodingFault) in
        if otp != nil { try store.draft(secret: secret, .otp, of: id) }
        if seal != nil { try store.draft(secret: secret, .seal, of: id) }
      }
      try store.draft(.userAdded(user), realClock: realClock)
    }
  }

  /// Issues a code as a ledger does; gives its text.
  mutating func issue(
    _ purpose: OneUseCode.Purpose, to user: BoundedText<32>, otp: CodeMethod? = nil, seal: CodeMethod? = nil,
    seed: UInt64, realClock: UInt64? = nil
  ) throws -> String {
    var random = TestRandom(state: seed)
    let code = try OneUseCode.random(using: &random)
    var crypto = OpenSSLCryptography()
    let entry = OneUseCodeRecord(
      id: state.nextCodeID, purpose: purpose, key: try code.key(for: purpose, using: &crypto), user: user,
      expires: time(realClock) + 600, methods: ByPurpose(otp: otp, seal: seal))
    var next = state
    next.nextCodeID += 1
    var encoded: [UInt8] = []
    CodeItem.encode(entry, into: &encoded)
    let now = time(realClock)
    var gone: [UInt64] = []
    for position in index.codes.indices where index.codes[position] != 0 {
      let other = try self.code(at: position)
      if other.expires <= now || (other.user == user && other.purpose == purpose) { gone.append(other.id) }
    }
    try record { (store: inout Self) throws(EncodingFault) in
      for id in gone { try store.draftCodeGone(id) }
      try next.encode(into: &store.draft)
      try store.draft.append(encoded.span)
      try store.draft(.codeIssued(purpose, user), realClock: realClock)
    }
    return code.text
  }
}
