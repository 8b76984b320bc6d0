import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A place of the app's own for an authenticator's whole state, such as a key ring, an encrypted file, or a row of the
/// app's database.
///
/// The authenticator reads the state at the beginning of each step, and passes every change to ``replace(_:with:)``
/// before it returns anything that depends on it. The bytes contain the secrets, masked as ``Record/protection`` says, and
/// unmasked for a record without any protection: the store keeps them from other users and programs.
public protocol AuthenticatorStore: Sendable {
  /// Returns the bytes that the last replacement stored; nil before the first.
  ///
  /// - Throws: `busy`, `tooOpen` or `failed`, as the store sees fit.
  func load() throws(AuthenticatorFault) -> [UInt8]?

  /// Replaces the state in one step: after a power cut, the store holds either the old bytes or the new ones.
  ///
  /// When this returns, the new bytes are durable, and the old ones are gone: not in a journal, not in an older file. The
  /// authenticator relies on this when a PIN changes, because two maskings of one secret next to each other reveal the PINs.
  ///
  /// - Parameters:
  ///   - old: The bytes that the new ones are made from; nil if the store was empty.
  ///   - new: The new bytes, at most 2^22 of them.
  /// - Throws: `busy` if the store does not hold `old` any more, because another process has changed it; `diskFull`,
  ///   `readOnly`, `tooOpen` or `failed` if the new bytes may not be durable.
  func replace(_ old: [UInt8]?, with new: [UInt8]) throws(AuthenticatorFault)
}

/// The number of changes that the state in an app's store has seen. An app that keeps it elsewhere, such as in a TPM or at
/// its server, notices an older copy of the state.
public struct AuthenticatorStamp: Sendable, Hashable {
  /// The identity of the state, 16 random bytes, which the first change draws.
  public let id: [UInt8]
  /// The number of changes since then. It never goes back.
  public let changeCount: UInt64

  /// Creates a stamp that was kept; nil unless `id` has 16 bytes.
  public init?(id: [UInt8], changeCount: UInt64) {
    guard id.count == StoreState.idByteCount else { return nil }
    (self.id, self.changeCount) = (id, changeCount)
  }
}

extension Authenticator {
  /// Opens the authenticator in a store of the app's own. An empty store is an authenticator without records.
  ///
  /// - Parameters:
  ///   - store: The place of the state.
  ///   - stamp: The last stamp that the app knows of; nil if it kept none. Without it, older bytes are noticed only
  ///     by an authenticator that has seen newer ones.
  /// - Throws: `corrupt`, `foreign` and `newerVersion` for bytes that cannot be used, `rolledBack` for bytes from before
  ///   `stamp`, `foreign` for bytes with another identity, `failed`, and the errors of the store.
  public convenience init(
    store: any AuthenticatorStore, notBefore stamp: AuthenticatorStamp? = nil
  ) throws(AuthenticatorFault) {
    var random = SystemRandom()
    try self.init(store: store, notBefore: stamp, cost: .interactive, random: &random)
  }

  package convenience init<Random: RandomSource & ~Copyable>(
    store: any AuthenticatorStore, notBefore stamp: AuthenticatorStamp? = nil, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) {
    let id: FixedBytes<16>
    do throws(RandomFailure) { id = try random.fixedBytes() } catch { throw .failed }
    self.init(tables: try StoreTables(store, notBefore: stamp, newID: [UInt8](id.bytes)), cost: cost)
  }

  /// Returns the stamp of the state in the app's store, by which the app finds out whether the state has changed; nil for an
  /// empty store, and for a folder.
  ///
  /// - Throws: The errors of ``init(store:notBefore:)``.
  public func stamp() throws(AuthenticatorFault) -> AuthenticatorStamp? {
    guard let tables = tables as? StoreTables else { return nil }
    return try tables.stamp()
  }
}

/// The authenticator's records in a store of the app's own.
///
/// It serves one thread at a time, as the authenticator does.
package final class StoreTables: RecordTables {
  private let store: any AuthenticatorStore
  private let newID: [UInt8]
  /// The newest state that was seen, and its check bytes; nil for a stamp that the app gave.
  private var latest: AuthenticatorStamp?
  private var latestCheck: [UInt8]?
  /// The records of the transaction that is under way.
  private var draft: Draft?

  private struct Draft {
    var records: [StoredRecord]
    var replacements: [StoredRecord]
    var isChanged = false
  }

  init(
    _ store: any AuthenticatorStore, notBefore stamp: AuthenticatorStamp?, newID: [UInt8]
  ) throws(AuthenticatorFault) {
    (self.store, self.newID, latest) = (store, newID, stamp)
    _ = try load()
  }

  func stamp() throws(AuthenticatorFault) -> AuthenticatorStamp? { try load()?.state.stamp }

  package func transaction<Result>(
    _ body: () throws(AuthenticatorFault) -> Result
  ) throws(AuthenticatorFault) -> Result {
    guard draft == nil else { throw .failed }
    let loaded = try load()
    draft = Draft(records: loaded?.state.records ?? [], replacements: loaded?.state.replacements ?? [])
    defer { draft = nil }
    let result = try body()
    guard let draft, draft.isChanged else { return result }
    let before = loaded?.state.stamp
    let (changeCount, isLast) = (before?.changeCount ?? 0).addingReportingOverflow(1)
    guard !isLast, changeCount <= maximumInteger else { throw .counterExhausted }
    guard let stamp = AuthenticatorStamp(id: before?.id ?? newID, changeCount: changeCount) else { throw .failed }
    let bytes = try StoreState(stamp: stamp, records: draft.records, replacements: draft.replacements).encoded()
    try store.replace(loaded?.bytes, with: bytes)
    (latest, latestCheck) = (stamp, StoreState.check(of: bytes))
    return result
  }

  package func records(of user: String?) throws(AuthenticatorFault) -> [StoredRecord] {
    let all = if let draft { draft.records } else { try load()?.state.records ?? [] }
    guard let user else { return all }
    return all.filter { $0.record.user.utf8.elementsEqual(user.utf8) }
  }

  package func save(_ stored: StoredRecord) throws(AuthenticatorFault) {
    try change { draft in draft.records.put(stored) }
  }

  package func delete(_ user: String, _ index: Int) throws(AuthenticatorFault) {
    try change { draft in draft.records.removeAll { $0.record.hasPlace(user, index) } }
  }

  package func replacements(of user: String) throws(AuthenticatorFault) -> [StoredRecord] {
    let all = if let draft { draft.replacements } else { try load()?.state.replacements ?? [] }
    return all.filter { $0.record.user.utf8.elementsEqual(user.utf8) }
  }

  package func saveReplacement(_ stored: StoredRecord) throws(AuthenticatorFault) {
    try change { draft in draft.replacements.put(stored) }
  }

  package func deleteReplacements(of user: String?, index: Int?) throws(AuthenticatorFault) {
    func isMeant(_ stored: StoredRecord) -> Bool {
      (index ?? stored.record.index) == stored.record.index
        && user.map { $0.utf8.elementsEqual(stored.record.user.utf8) } ?? true
    }
    // Without a change, nothing is stored.
    guard draft?.replacements.contains(where: isMeant) != false else { return }
    try change { draft in draft.replacements.removeAll(where: isMeant) }
  }

  /// Does nothing: a store has no remains, because the old bytes are gone when ``AuthenticatorStore/replace(_:with:)``
  /// returns.
  package func eraseRemains() {}

  private func change(_ body: (inout Draft) -> Void) throws(AuthenticatorFault) {
    // Nothing is written outside of a transaction.
    guard var draft else { throw .failed }
    body(&draft)
    draft.isChanged = true
    self.draft = draft
  }

  /// Loads the state, which must not be older than the newest that was seen.
  private func load() throws(AuthenticatorFault) -> (bytes: [UInt8], state: StoreState)? {
    guard let bytes = try store.load() else {
      guard latest == nil else { throw .rolledBack }
      return nil
    }
    let state = try StoreState(bytes)
    let check = StoreState.check(of: bytes)
    if let latest {
      guard state.stamp.id == latest.id else { throw .foreign }
      guard state.stamp.changeCount >= latest.changeCount else { throw .rolledBack }
      // Another branch of the same history is as bad as an older state.
      let isSame = state.stamp.changeCount > latest.changeCount || (latestCheck ?? check) == check
      guard isSame else { throw .rolledBack }
    }
    (latest, latestCheck) = (state.stamp, check)
    return (bytes, state)
  }
}

extension [StoredRecord] {
  /// Puts a record in its place, where it replaces the one that is there.
  fileprivate mutating func put(_ stored: StoredRecord) {
    removeAll { $0.record.hasPlace(stored.record.user, stored.record.index) }
    append(stored)
    sort { $0.record.precedes($1.record) }
  }
}

extension Record {
  fileprivate func hasPlace(_ user: String, _ index: Int) -> Bool {
    self.index == index && self.user.utf8.elementsEqual(user.utf8)
  }

  /// Returns whether the record stands before `other`, in the order of the bytes of users' names and then of indices.
  func precedes(_ other: Record) -> Bool {
    if user.utf8.elementsEqual(other.user.utf8) { return index < other.index }
    return user.utf8.lexicographicallyPrecedes(other.user.utf8)
  }
}
