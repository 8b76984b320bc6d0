import HoldfastCore
import HoldfastOpenSSL

/// Time that stands still until it is told otherwise.
final class ManualClock: Clock {
  var unix: UInt64?
  var milliseconds: UInt64 = 0

  init(_ unix: UInt64?) { self.unix = unix }
  func unixSeconds() -> UInt64? { unix }
  func monotonicMilliseconds() -> UInt64 { milliseconds }
}

/// Gives the same bytes again and again, as a random source at a bad boot would.
struct RepeatingRandom: RandomSource {
  var bytes: [UInt8]

  func fill(_ span: inout MutableSpan<UInt8>) {
    for index in span.indices { span[index] = bytes[index % bytes.count] }
  }
}

/// A store in memory that keeps what it is told and can be made to fail.
final class MemoryStore: DeviceStore {
  var issuers: [KeyID: P256Point] = [:]
  /// The keys that issuers share with the device.
  var macKeys: [KeyID: [UInt8]] = [:]
  var floor: UInt64 = 0
  var generations: [KeyID: UInt64] = [:]
  var uses: [TokenID: UseRecord] = [:]
  var nonces: Set<FixedBytes<16>> = []
  /// The most uses and nonces together.
  var capacity = 8
  var failsToSettle = false
  var failsToRead = false
  /// Trusts nobody any more once a round is to be recorded.
  var losesTrust = false
  var users: [BoundedText<32>: UserRecord] = [:]
  var secrets: [CodePurpose: [UInt8]] = [:]
  /// The owner's codes by id.
  var codes: [UInt64: CodeEntry] = [:]
  var activated: [BoundedText<32>: [CodePurpose: [UInt8]]] = [:]
  var unlocked: [BoundedText<32>] = []
  /// Called after an attempt is recorded, before its codes are compared.
  var onAttempt: () -> Void = {}

  struct CodeEntry {
    var purpose: OneUseCode.Purpose
    var key: [UInt8]
    var user: BoundedText<32>
    var expires: UInt64
    var otp: CodeMethod?
    var seal: CodeMethod?
  }
  /// What was recorded of a round.
  struct RecordedRound {
    let verifyingKey: KeyID?
    let tokenID: TokenID
    let subject: BoundedText<64>
    let issuedAt: UInt64
    let expires: UInt64
    let generation: UInt64
    let maximumUses: UInt64?
    let version: AppVersion
    let command: BoundedText<32>
    let realClock: UInt64?
    let status: Status
    let notice: Notice
  }
  var rounds: [RecordedRound] = []
  /// What was answered to repetitions, of which nothing is recorded.
  var repetitions: [Status] = []
  var unproved: [Status] = []
  var requests: [TokenID: RequestRecord] = [:]
  var requestCapacity = 4
  /// The requests that were accepted, and whose outcome nobody told.
  var acting: Set<RequestIdentity> = []
  /// Forgets each outcome, as a power cut before it is written does.
  var losesOutcomes = false

  final class Box {
    let token: AuthenticatedToken
    init(_ token: consuming AuthenticatedToken) { self.token = token }
  }
  var remembered: [TokenReference: Box] = [:]

  func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    if let point = issuers[keyID] { return .signing(point) }
    guard let key = macKeys[keyID], let secret = Secret<32>(copying: key.span) else { return nil }
    return .mac(secret)
  }

  func clockFloor() throws(DeviceFault) -> UInt64 {
    guard !failsToRead else { throw DeviceFault.store }
    return floor
  }

  func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    guard let box = remembered[reference] else { return false }
    token.set(box.token)
    return true
  }

  func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    remembered[reference] = Box(token.copy())
  }

  func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide) throws(DeviceFault) {
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
        command: round.command, realClock: round.realClock, status: decision.status, notice: decision.notice))
  }

  func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    acting.remove(request)
    guard !losesOutcomes, requests[request.tokenID]?.highest == request.number else { return }
    requests[request.tokenID]?.outcome = outcome
  }

  func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret? {
    guard !failsToRead else { throw DeviceFault.store }
    guard let bytes = secrets[purpose] else { return nil }
    var secret = CodeSecret()
    do throws(EncodingFault) { try secret.append(bytes.span) } catch { throw DeviceFault.store }
    return secret
  }

  func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord? {
    guard !failsToRead else { throw DeviceFault.store }
    return users[name]
  }

  func oneUseCode(at index: Int) throws(DeviceFault) -> OneUseCodeRecord? {
    guard !failsToRead else { throw DeviceFault.store }
    let ids = codes.keys.sorted()
    guard index < ids.count, let entry = codes[ids[index]], let key = Secret<32>(copying: entry.key.span) else {
      return nil
    }
    return OneUseCodeRecord(
      id: ids[index], purpose: entry.purpose, key: key, user: entry.user, expires: entry.expires,
      methods: ByPurpose(otp: entry.otp, seal: entry.seal))
  }

  func activate(
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

  func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) throws(DeviceFault) -> Bool {
    guard !failsToSettle else { throw DeviceFault.store }
    guard let code = codes[codeID], let facts = facts(ofCode: codeID), let user = decide(facts) else { return false }
    codes[codeID] = nil
    unlocked.append(code.user)
    users[code.user] = user
    return true
  }

  private func facts(ofCode id: UInt64) -> CodeFacts? {
    guard let entry = codes[id], let key = Secret<32>(copying: entry.key.span) else { return nil }
    return CodeFacts(
      code: OneUseCodeRecord(
        id: id, purpose: entry.purpose, key: key, user: entry.user, expires: entry.expires,
        methods: ByPurpose(otp: entry.otp, seal: entry.seal)),
      user: users[entry.user], userCount: users.count, userCapacity: 16, clockFloor: floor)
  }

  func countUnauthenticated(_ status: Status) { unproved.append(status) }
}

/// A policy in memory, at first the simulated lock's.
final class TestPolicy: Policy {
  var rules: [BoundedText<32>: CommandRule] = [
    "lock": CommandRule(factors: [.integrity, .device]),
    "unlock": CommandRule(factors: [.integrity, .device]),
    "status": CommandRule(factors: .device),
  ]
  var limits = TokenLimits()
  var commonFactors: Factors = .device
  var codeLimits = CodeLimits()
  var acceptsUnsigned = false
  var acceptsMAC = false
  var maximumIssueAdvanceSeconds: UInt64 = 400 * 86_400

  func rule(for command: BoundedText<32>) -> CommandRule? { rules[command] }
}

extension BoundedText: ExpressibleByUnicodeScalarLiteral {}
extension BoundedText: ExpressibleByExtendedGraphemeClusterLiteral {}
extension BoundedText: ExpressibleByStringLiteral {
  /// Lets tests write texts as literals.
  public init(stringLiteral text: String) { self.init(text)! }
}

/// A lock that counts what it was told.
final class CountingLock: Actuator {
  var performed: [BoundedText<32>] = []
  var fails = false

  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    performed.append(request.command)
    let answer = Array("\(request.command)ed".utf8)
    do throws(EncodingFault) { try result.append(answer.span) } catch { throw ActuatorFailure() }
    if fails { throw ActuatorFailure() }
  }
}

enum TestEnvironment: DeviceEnvironment {
  typealias Crypto = OpenSSLCryptography
  typealias Key = P256PrivateKey
  typealias Store = MemoryStore
  typealias Rules = TestPolicy
  typealias Random = RepeatingRandom
  typealias Time = ManualClock
}

typealias TestSession = DeviceSession<TestEnvironment>
