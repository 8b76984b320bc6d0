import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport

/// The records with which a ledger is filled: real rows of its tables, many in one transaction.
struct LedgerFilling {
  private let ledger: Ledger
  private let memory: TokenMemory
  private let verifyingKey: KeyID

  /// The most rows of a transaction. SQLite's log in front of the file stays short.
  private static let batch = 100_000

  init(_ ledger: Ledger, _ memory: TokenMemory, issuer: P256Point) throws {
    (self.ledger, self.memory) = (ledger, memory)
    var cryptography = OpenSSLCryptography()
    verifyingKey = try keyID(of: issuer, using: &cryptography)
  }

  func fill(_ kind: LedgerWork.Kind, _ count: Int) throws {
    switch kind {
    case .entries: try fillEntries(count)
    case .tokens: try fillTokens(count)
    case .requests: try fillRequests(count)
    case .nonces: try fillNonces(count)
    case .users, .adding: try fillUsers(count)
    }
  }

  /// The entry of the last round, again and again, each with its hash.
  private func fillEntries(_ count: Int) throws {
    let last = try ledger.summary().audit.count
    guard let event = try ledger.auditEntries(after: last - 1, limit: 1).first?.event else { throw UnknownWork() }
    try inBatches(count) { (_, tables, state) throws(DatabaseError) in
      try tables.append(event, time: testTime, to: &state)
    }
  }

  private func fillTokens(_ count: Int) throws {
    let token = AuthenticatedToken()
    for number in 0..<count { memory.remember(token, as: TokenReference(Self.bytes(of: number).span)!) }
  }

  private func fillRequests(_ count: Int) throws {
    let record = RequestRecord(first: 1, digest: FixedBytes(filledWith: 0x5a), expires: Inputs.claims.expires)
    try inBatches(count) { (number, tables, state) throws(DatabaseError) in
      try tables.keep(record, tables.key(verifyingKey), .bytes(Self.bytes(of: number)), state: &state)
    }
  }

  /// A thousand nonces of each token.
  private func fillNonces(_ count: Int) throws {
    let expires = Inputs.claims.expires
    try inBatches(count) { (number, tables, state) throws(DatabaseError) in
      try tables.database.run(
        "INSERT INTO nonces VALUES (?, ?, ?, ?)", tables.key(verifyingKey), .bytes(Self.bytes(of: number / 1000)),
        .bytes(Self.bytes(of: number)), .unsigned(expires))
      state.keptCount += 1
    }
  }

  private func fillUsers(_ count: Int) throws {
    try inBatches(count) { (number, tables, _) throws(DatabaseError) in
      let id = try tables.insertUser(Self.user(number), now: testTime)
      try tables.insertAccount(.otp, .hotp(.sha1, .six), nextPosition: 0, secret: Inputs.codeKey.span, of: id)
    }
  }

  private func inBatches(
    _ count: Int, _ insert: (Int, borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Void
  ) throws {
    for start in stride(from: 0, to: count, by: Self.batch) {
      try ledger.write { (tables, state) throws(DatabaseError) in
        for number in start..<min(start + Self.batch, count) { try insert(number, tables, &state) }
      }
    }
  }

  /// Adds a user as the owner does.
  static func add(user number: Int, to ledger: Ledger) throws {
    let account = NewAccount(
      purpose: .otp, method: .hotp(.sha1, .six), nextPosition: 0, secret: SecretBytes(copying: Inputs.codeKey.span))
    guard let account else { throw UnknownWork() }
    try ledger.addUser(user(number), [account], replaces: false, realClock: testTime)
  }

  static func user(_ number: Int) -> BoundedText<32> { BoundedText("user-\(number)")! }

  /// Sixteen bytes, big-endian. The first bit is zero, as in a nonce that an app chose.
  static func bytes(of number: Int) -> [UInt8] {
    (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: number >> (8 * (15 - $0))) }
  }
}
