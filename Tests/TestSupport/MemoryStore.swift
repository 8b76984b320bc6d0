import HoldfastCore
import HoldfastOpenSSL

/// A store in memory that keeps what it is told and can be made to fail.
package final class MemoryStore: DeviceStore {
  package var issuers: [KeyID: P256Point] = [:]
  /// The keys that issuers share with the device.
  package var macKeys: [KeyID: [UInt8]] = [:]
  package var floor: UInt64 = 0
  package var generations: [KeyID: UInt64] = [:]
  package var uses: [TokenID: UseRecord] = [:]
  package var nonces: Set<Nonce> = []
  /// The most uses and nonces together.
  package var capacity = 8
  package var failsToSettle = false
  package var failsToRead = false
  /// Fails once a decision was made.
  package var failsToWrite = false
  /// Trusts nobody any more once a round is to be recorded.
  package var losesTrust = false
  package var users: [BoundedText<32>: UserRecord] = [:]
  package var secrets: [CodePurpose: [UInt8]] = [:]
  /// The users to whom other authenticators belong, by the names of these.
  package var mainUsers: [BoundedText<32>: BoundedText<32>] = [:]
  /// The protections that the owner demands, by the ids of activation codes.
  package var demands: [UInt64: ProtectionDemand] = [:]
  /// The owner's codes by id.
  package var codes: [UInt64: CodeEntry] = [:]
  package var activated: [BoundedText<32>: [CodePurpose: [UInt8]]] = [:]
  package var unlocked: [BoundedText<32>] = []
  /// Called after an attempt is recorded, before its codes are compared.
  package var onAttempt: () -> Void = {}

  package struct CodeEntry {
    package var purpose: OneUseCode.Purpose
    fileprivate let key: [UInt8]
    fileprivate let user: BoundedText<32>
    fileprivate let expires: UInt64
    fileprivate let methods: ByPurpose<CodeMethod>
  }

  /// The record of a round.
  package struct RecordedRound {
    package let verifyingKey: KeyID?
    package let tokenID: TokenID
    package let subject: BoundedText<64>
    package let issuedAt: UInt64
    package let expires: UInt64
    package let generation: UInt64
    package let maximumUses: UInt64?
    package let version: AppVersion
    package let command: BoundedText<32>
    package let realClock: UInt64?
    package let status: Status
    package let notice: Notice
    package let tellsBulletins: Bool
  }

  package var rounds: [RecordedRound] = []
  /// The failures of accepted commands that were recorded.
  package var failures: [(failure: ActuatorFailure, round: AcceptedRound)] = []
  /// The answers to repetitions, which leave no record.
  package var repetitions: [Status] = []
  package var unproved: [Status] = []
  package var requests: [TokenID: RequestRecord] = [:]
  package var requestCapacity = 4
  /// The requests that were accepted, and whose outcome nobody told.
  package var acting: Set<RequestIdentity> = []
  /// Forgets each outcome, as a power cut before it is written does.
  package var losesOutcomes = false

  /// The numbers of the bulletins, by key. No key has any unless a test says so.
  package var bulletins: [KeyID: BulletinList] = [:]
  /// The terms on which bulletins came to be judged, after their signatures were checked.
  package var judged: [BulletinTerms] = []

  package final class Box {
    let token: AuthenticatedToken
    init(_ token: consuming AuthenticatedToken) { self.token = token }
  }
  package var remembered: [TokenReference: Box] = [:]

  package init() {}

  /// Creates the store of a device that trusts one issuer.
  package convenience init(trusting point: P256Point, macKey: [UInt8]? = nil) throws {
    self.init()
    var cryptography = OpenSSLCryptography()
    issuers[try keyID(of: point, using: &cryptography)] = point
    if let macKey { macKeys[try keyID(of: .mac(secret(macKey)), using: &cryptography)] = macKey }
  }

  /// Issues a code, as the owner does.
  package func issue(
    _ code: borrowing OneUseCode, id: UInt64, for purpose: OneUseCode.Purpose, of user: BoundedText<32>,
    expires: UInt64, otp: CodeMethod?, seal: CodeMethod?
  ) throws {
    var cryptography = OpenSSLCryptography()
    let key = try code.key(for: purpose, using: &cryptography).withBytes { [UInt8]($0) }
    codes[id] = CodeEntry(
      purpose: purpose, key: key, user: user, expires: expires, methods: ByPurpose(otp: otp, seal: seal))
  }

  package func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    if let point = issuers[keyID] { return .signing(point) }
    guard let key = macKeys[keyID] else { return nil }
    return .mac(secret(key))
  }

  package func clockFloor() throws(DeviceFault) -> UInt64 {
    guard !failsToRead else { throw DeviceFault.store }
    return floor
  }

  package func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    guard let box = remembered[reference] else { return false }
    token.set(box.token)
    return true
  }

  package func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    remembered[reference] = Box(token.copy())
  }

  package func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide) throws(DeviceFault)
  {
    guard !failsToSettle else { throw DeviceFault.store }
    if losesTrust { (issuers, macKeys) = ([:], [:]) }
    var snapshot = LedgerSnapshot(
      clockFloor: floor, generationFloor: round.verifyingKey.flatMap { generations[$0] } ?? 0,
      uses: uses[round.tokenID], isNonceUsed: round.compatibilityNonce.map { nonces.contains($0) } ?? false,
      replayRoom: ReplayRoom(recordCount: nonces.count + uses.count, capacity: capacity, nonceQuota: capacity),
      isIssuerTrusted: round.verifyingKey.map { issuers[$0] != nil || macKeys[$0] != nil } ?? true,
      user: round.codeUser.flatMap { users[$0] })
    snapshot.request = requests[round.tokenID]
    snapshot.hasRequestRoom = requests.count < requestCapacity
    snapshot.isActing = RequestIdentity(round).map { acting.contains($0) } ?? false
    decide(round, snapshot, &decision)
    guard !failsToWrite else { throw DeviceFault.store }
    guard !decision.isRepetition else { return repetitions.append(decision.status) }
    if let request = decision.request {
      requests[round.tokenID] = request
      if let identity = RequestIdentity(round) { acting.insert(identity) }
    }
    if let name = round.codeUser, let user = decision.user, users[name]?.id == user.id { users[name] = user }
    floor = decision.clockFloor
    if let generation = decision.generationFloor, let key = round.verifyingKey { generations[key] = generation }
    if let counted = decision.uses { uses[round.tokenID] = counted }
    if decision.keepsNonce, let nonce = round.compatibilityNonce { nonces.insert(nonce) }
    guard decision.attempt == nil else {
      onAttempt()
      return
    }
    rounds.append(
      RecordedRound(
        verifyingKey: round.verifyingKey, tokenID: round.tokenID, subject: round.subject, issuedAt: round.issuedAt,
        expires: round.expires, generation: round.generation, maximumUses: round.maximumUses, version: round.version,
        command: round.command, realClock: round.realClock, status: decision.status, notice: decision.notice,
        tellsBulletins: round.tellsBulletins))
    decision.auditSequence = UInt64(rounds.count)
  }

  package func recordFailure(_ failure: ActuatorFailure, of round: borrowing AcceptedRound) {
    failures.append((failure, copy round))
  }

  package func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    acting.remove(request)
    guard !losesOutcomes, requests[request.tokenID]?.highest == request.number else { return }
    requests[request.tokenID]?.outcome = outcome
  }

  package func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret? {
    guard !failsToRead else { throw DeviceFault.store }
    guard let bytes = secrets[purpose] else { return nil }
    var secret = CodeSecret()
    do throws(EncodingFault) { try secret.append(bytes.span) } catch { throw DeviceFault.store }
    return secret
  }

  package func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord? {
    guard !failsToRead else { throw DeviceFault.store }
    return users[name]
  }

  package func oneUseCode(at index: Int) throws(DeviceFault) -> OneUseCodeRecord? {
    guard !failsToRead else { throw DeviceFault.store }
    let ids = codes.keys.sorted()
    return index < ids.count ? record(ofCode: ids[index]) : nil
  }

  private func record(ofCode id: UInt64) -> OneUseCodeRecord? {
    guard let entry = codes[id] else { return nil }
    return OneUseCodeRecord(
      id: id, purpose: entry.purpose, key: secret(entry.key), user: entry.user, expires: entry.expires,
      methods: entry.methods)
  }

  package func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool {
    guard !failsToSettle else { throw DeviceFault.store }
    guard let code = codes[codeID], let facts = facts(ofCode: codeID), let user = decide(facts) else { return false }
    codes[codeID] = nil
    users[code.user] = user
    activated[code.user] = [
      .otp: secrets.otp.withBytes { [UInt8]($0) }, .seal: secrets.seal.withBytes { [UInt8]($0) },
      .host: secrets.host.withBytes { [UInt8]($0) },
    ]
    return true
  }

  package func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) throws(DeviceFault) -> Bool {
    guard !failsToSettle else { throw DeviceFault.store }
    guard let code = codes[codeID], let facts = facts(ofCode: codeID), let user = decide(facts) else { return false }
    codes[codeID] = nil
    unlocked.append(code.user)
    users[code.user] = user
    return true
  }

  private func facts(ofCode id: UInt64) -> CodeFacts? {
    guard let code = record(ofCode: id) else { return nil }
    let user = users[code.user]
    return CodeFacts(code: code, user: user, userCount: users.count, userCapacity: 16, clockFloor: floor)
  }

  package func mainUser(of name: BoundedText<32>) throws(DeviceFault) -> BoundedText<32> {
    guard !failsToRead else { throw DeviceFault.store }
    return mainUsers[name] ?? name
  }

  package func protectionDemand(ofCode codeID: UInt64) -> ProtectionDemand? { demands[codeID] }

  package func bulletins(of issuer: KeyID) throws(DeviceFault) -> BulletinList? {
    guard !failsToRead else { throw DeviceFault.store }
    return bulletins[issuer]
  }

  package func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult {
    guard !failsToWrite else { throw DeviceFault.store }
    judged.append(terms)
    return .taken
  }

  package func countUnauthenticated(_ status: Status) { unproved.append(status) }
}
