import HoldfastCore
import HoldfastOpenSSL
import TestSupport

import HoldfastFirmware

/// A flash store that notes what it holds each time that it has promised to remember something.
struct WatchedStore: ~Copyable, DeviceStore {
  private(set) var store: TestStore
  private(set) var promised: [StoreContents] = []

  init(_ store: consuming TestStore) {
    self.store = store
  }

  /// Does something that the store is to remember; notes what it then holds.
  mutating func promise<Result: ~Copyable, Failure: Error>(
    _ body: (inout TestStore) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result = try body(&store)
    if let contents = try? store.contents() { promised.append(contents) }
    return result
  }

  var remainingWordCount: Int { store.journal.flash.remainingWordCount ?? 0 }

  mutating func knownTime() throws(DeviceFault) -> UInt64 { try store.knownTime() }
  mutating func clockFloor() throws(DeviceFault) -> UInt64 { try store.clockFloor() }
  mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { store.trustedIssuer(keyID) }
  mutating func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    store.recall(reference, into: &token)
  }

  mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    store.remember(token, as: reference)
  }

  mutating func record(
    _ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide
  ) throws(DeviceFault) {
    try promise { (store: inout TestStore) throws(DeviceFault) in try store.record(round, &decision, decide: decide) }
  }

  mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    store.keepOutcome(outcome, of: request)
    // It does not say whether it could: nobody waits for it.
    if !store.isFailed, let contents = try? store.contents() { promised.append(contents) }
  }

  mutating func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord? { try store.user(named: name) }

  mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret? {
    try store.codeSecret(of: userID, purpose)
  }

  mutating func oneUseCode(at index: Int) throws(DeviceFault) -> OneUseCodeRecord? {
    try store.oneUseCode(at: index)
  }

  mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool {
    let result = try store.activate(codeID, secrets, realClock: realClock, decide: decide)
    if let contents = try? store.contents() { promised.append(contents) }
    return result
  }

  mutating func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) throws(DeviceFault) -> Bool {
    try promise { (store: inout TestStore) throws(DeviceFault) in
      try store.unlock(codeID, realClock: realClock, decide: decide)
    }
  }

  mutating func writeBulletins(
    of issuer: KeyID, into list: inout EncodedBulletinList
  ) throws(DeviceFault) -> Bool { try store.writeBulletins(of: issuer, into: &list) }

  mutating func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult {
    let result = try store.take(bulletin, on: terms)
    if result == .taken, let contents = try? store.contents() { promised.append(contents) }
    return result
  }

  mutating func writeAuditPage(
    from: UInt64, into text: inout SealedReplyBuffer
  ) throws(DeviceFault) -> P256Point? { try store.writeAuditPage(from: from, into: &text) }

  mutating func acknowledgedAuditCount() throws(DeviceFault) -> UInt64 { try store.acknowledgedAuditCount() }

  mutating func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(DeviceFault) -> BulletinResult {
    let result = try store.acknowledgeAudit(chain, by: home, realClock: realClock)
    if result != .known, let contents = try? store.contents() { promised.append(contents) }
    return result
  }

  mutating func countUnauthenticated(_ status: Status) { store.countUnauthenticated(status) }
}
