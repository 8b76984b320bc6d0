import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice
import HoldfastFirmware

/// The same rounds at two devices that differ only in their store: a ledger on Linux, and the flash of a small device.
@Suite struct DifferentialTests {
  @Test func `both stores give the same answers, byte for byte, and know the same afterwards`() throws {
    var seen: Set<Status> = []
    var counts = [0, 0, 0]
    for seed: UInt64 in 1...8 {
      var twins = try TwinDevices(hasClock: seed % 2 == 0, seed: seed)
      for step in 0..<400 {
        try twins.step()
        if let difference = try twins.difference() {
          Issue.record("seed \(seed), step \(step), \(twins.lastStep): \(difference)")
          break
        }
      }
      seen.formUnion(twins.statuses)
      counts = [
        counts[0] + twins.activationCount, counts[1] + twins.unlockCount, counts[2] + twins.compactionCount,
      ]
    }
    let missing = Set(Status.allCases).subtracting(seen).subtracting([.versionTooOld, .challengeExpired, .internal])
    #expect(missing.isEmpty, "\(missing)")
    #expect(counts.allSatisfy { $0 > 10 }, "\(counts)")
  }
}

/// A ledger's device and a flash store's, which are asked the same.
private struct TwinDevices {
  let firmware: TestFirmware
  private let folder: TemporaryFolder
  private let ledger: Ledger
  private let linux: TestMachine<SessionStore<TestClock>>
  private let small: TestMachine<TestStore>
  private let stranger: TestIssuer
  private let lasting: TestProver
  private var generator: SeededGenerator
  private var provers: [TestProver] = []
  private(set) var statuses: Set<Status> = []
  private(set) var lastStep = ""
  private(set) var activationCount = 0
  private(set) var unlockCount = 0
  private(set) var compactionCount = 0
  private var seed: UInt64 = 100
  private var lastNonce: UInt8 = 0
  private var lastNumber: UInt64 = 1000
  private var secrets: [BoundedText<32>: [CodePurpose: [UInt8]]] = [:]
  private var answersAgree = true

  init(hasClock: Bool, seed: UInt64) throws {
    generator = SeededGenerator(seed)
    firmware = try TestFirmware(policy: .forLock(acceptsUnsigned: seed == 2), issuerCount: 3)
    folder = try TemporaryFolder()
    try Ledger.create(path: folder.file("ledger"), deviceID: firmware.deviceID, realClock: testTime)
    let limits = LedgerLimits(keptCount: 64, nonceQuota: 8, requestCount: 64)
    ledger = try Ledger(path: folder.file("ledger"), limits: limits)
    for issuer in firmware.issuers { try ledger.trust(issuer.trustedKey(), realClock: testTime) }
    stranger = try TestIssuer()
    lasting = try firmware.prover {
      ($0.tokenID, $0.generation, $0.expires) = (TokenID(filledWith: 0xee), 9, testTime + 900_000_000)
    }
    linux = try TestMachine(
      SessionStore(ledger: ledger, memory: TokenMemory(capacity: 8), clock: firmware.clock), of: firmware)
    // The ledger's entries of how it was made come before.
    let audit = try ledger.summary().audit
    small = try TestMachine(firmware.open(), of: firmware)
    try small.withStore { try $0.goOn(from: audit) }
    if !hasClock { firmware.clock.seconds = nil }
    try addUsers()
    for _ in 0..<5 { provers.append(try newProver()) }
  }

  private var realClock: UInt64? { firmware.clock.seconds }

  private mutating func addUsers() throws {
    for (user, otp, seal) in [(ann, hotpMethod, counterSealMethod), (bob, totpMethod, challengeSealMethod)] {
      let secret = usersSecret
      let accounts = [(CodePurpose.otp, otp), (.seal, seal)].compactMap { (purpose, method) in
        NewAccount(purpose: purpose, method: method, secret: SecretBytes(copying: secret.span))
      }
      try ledger.addUser(user, accounts, replaces: false, realClock: realClock)
      let clock = realClock
      try small.withStore { try $0.add(user, otp: otp, seal: seal, secret: usersSecret, realClock: clock) }
      secrets[user] = [.otp: usersSecret, .seal: usersSecret]
    }
  }

  private mutating func newProver() throws -> TestProver {
    seed += 1
    let kind = Int.random(in: 0..<12, using: &generator)
    let age = UInt64.random(in: 0..<5000, using: &generator)
    let (id, generation) = (UInt8(truncatingIfNeeded: seed), UInt64.random(in: 1..<4, using: &generator))
    let floor = try ledger.summary().clockFloor
    let maximum = UInt64.random(in: 1..<4, using: &generator)
    return try firmware.prover(
      from: Int.random(in: 0..<3, using: &generator), stranger: kind == 0 ? stranger : nil, isSigned: kind != 1
    ) {
      $0.tokenID = TokenID(filledWith: id)
      $0.issuedAt = floor + (kind == 2 ? 500 * 86_400 : age / 10)
      $0.expires = $0.issuedAt + age
      $0.generation = kind == 3 ? generation + 3 : generation
      if kind > 7 { $0.maximumUses = maximum }
      if kind == 4 { $0.commands = ["status"] }
      if kind == 5 { $0.user = "bob" }
    }
  }

  mutating func step() throws {
    switch Int.random(in: 0..<20, using: &generator) {
    case 0: provers[Int.random(in: 0..<provers.count, using: &generator)] = try newProver()
    case 1:
      if realClock != nil { firmware.clock.seconds! += UInt64.random(in: 0..<2000, using: &generator) }
    case 2: try oneUse(.activation)
    case 3: try oneUse(.unlock)
    case 4...6: try compatibilityRound()
    case 7: try noise()
    case 8:
      compactionCount += 1
      try small.withStore { (store: inout TestStore) throws in try store.compact() }
    case 9, 10: try wrongCode()
    default: try sessionRound()
    }
    try followUnproved()
  }

  private mutating func note(_ name: String, _ answers: (linux: [UInt8], small: [UInt8])) {
    lastStep = name
    answersAgree = answersAgree && answers.linux == answers.small && linux.response == small.response
    if let status = linux.response?.status { statuses.insert(status) }
  }

  private mutating func challenge() throws -> [UInt8] {
    let challenges = (try linux.challenge(), try small.challenge())
    answersAgree = answersAgree && challenges.0 == challenges.1
    return challenges.0
  }

  private mutating func sessionRound() throws {
    let prover = provers[Int.random(in: 0..<provers.count, using: &generator)]
    let commands = ["unlock", "status", "configure", "lock", "open-safe", "fly", "user-sync", "host-code"]
    let command = commands[Int.random(in: 0..<commands.count, using: &generator)]
    let flaws = Flaws(
      rawValue: Bool.random(using: &generator) ? 0 : [1, 2, 4, 8, 16, 32, 32, 32].randomElement(using: &generator)!)
    let user = Bool.random(using: &generator) ? ann : bob
    var parameters: [String] = []
    if command == "user-sync" { parameters = [user.description] }
    if command == "host-code" { parameters = [user.description, "0123456789abcdef"] }
    let isRight = Int.random(in: 0..<3, using: &generator) > 0
    let (otp, seal) = try codes(of: user, command, isRight: isRight)
    let isGiven = Int.random(in: 0..<8, using: &generator) > 0
    let answer = try prover.answer(
      try challenge(), command: command, parameters: parameters, flaws: flaws, otp: isGiven ? otp : nil,
      seal: isGiven ? seal : nil, number: nextNumber())
    note("\(command) \(flaws.rawValue)", (linux.respond(answer.message), small.respond(answer.message)))
  }

  /// Often one that came before, or is below the window; sometimes none.
  private mutating func nextNumber() -> UInt64? {
    switch Int.random(in: 0..<60, using: &generator) {
    case 0..<10: return nil
    case 10: return [0, 1 << 40, (1 << 53) - 1].randomElement(using: &generator)!
    case 11..<20: lastNumber += UInt64.random(in: 60..<70, using: &generator)
    case 20..<40: lastNumber += 1
    case 40..<50: return lastNumber - min(lastNumber, UInt64.random(in: 0..<80, using: &generator))
    default: break
    }
    return lastNumber
  }

  /// The codes that the user's authenticator would give, according to the ledger.
  private mutating func codes(
    of user: BoundedText<32>, _ command: String, isRight: Bool
  ) throws -> (otp: UserCode?, seal: UserCode?) {
    guard isRight, let record = try ledger.users().first(where: { $0.name == user })?.record,
      let otpSecret = secrets[user]?[.otp], let sealSecret = secrets[user]?[.seal]
    else {
      let wrong = UserCode(user: user, code: BoundedText("000000"))
      return (wrong, wrong)
    }
    let now = max(try ledger.summary().clockFloor, realClock ?? 0)
    let far = UInt64([0, 0, 3, 40].randomElement(using: &generator)!)
    var otp: UserCode?
    if let account = record.accounts[.otp] {
      let first = account.method.isCounted ? account.nextPosition : record.time(at: now) / 30
      otp = try password(first + far, secret: otpSecret, user: user)
    }
    var code: UserCode?
    if let account = record.accounts[.seal] {
      let challenge = account.method.isCounted ? nil : record.challenge
      code = try seal(
        account.method, account.nextPosition, challenge: challenge.map { Array($0.bytes) } ?? [], BoundedText(command)!,
        secret: sealSecret, user: user)
    }
    return (otp, code)
  }

  /// Enough failures to lock a user out, in time.
  private mutating func wrongCode() throws {
    let answer = try lasting.answer(
      try challenge(), command: "configure", otp: UserCode(user: bob, code: BoundedText("000000")))
    note("a wrong code", (linux.respond(answer.message), small.respond(answer.message)))
  }

  private mutating func compatibilityRound() throws {
    let prover = provers[Int.random(in: 0..<provers.count, using: &generator)]
    if Int.random(in: 0..<4, using: &generator) > 0 { lastNonce &+= 1 }
    let flaws = Flaws(rawValue: [0, 0, 0, 1, 2, 4, 8, 10, 32].randomElement(using: &generator)!)
    // Its top bit must be clear.
    let nonce = [lastNonce & 0x7f] + [UInt8](repeating: lastNonce, count: 15)
    let command = Bool.random(using: &generator) ? "unlock" : "status"
    let message = try prover.compatibilityAnswer(nonce: nonce, command: command, flaws: flaws)
    _ = try challenge()
    note("compatibility \(flaws.rawValue)", (linux.respond(message), small.respond(message)))
  }

  private mutating func noise() throws {
    _ = try challenge()
    let message = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
      UInt8.random(in: 0...255, using: &generator)
    }
    note("noise", (linux.respond(message), small.respond(message)))
  }

  private mutating func oneUse(_ purpose: OneUseCode.Purpose) throws {
    seed += 1
    let (user, codeSeed, clock) = (Bool.random(using: &generator) ? ann : bob, seed, realClock)
    let method = user == ann ? (hotpMethod, counterSealMethod) : (totpMethod, challengeSealMethod)
    var random = TestRandom(state: codeSeed)
    let text: String
    if purpose == .activation {
      let methods = ByPurpose(otp: method.0, seal: method.1)
      text = try ledger.issueActivation(of: user, methods, replaces: true, realClock: clock, random: &random).text
    } else {
      text = try ledger.issueUnlock(of: user, realClock: clock, random: &random).text
    }
    try small.withStore { (store: inout TestStore) throws in
      let isNew = purpose == .activation
      let other = try store.issue(
        purpose, to: user, otp: isNew ? method.0 : nil, seal: isNew ? method.1 : nil, seed: codeSeed, realClock: clock)
      #expect(text == other)
    }
    let isWrong = Int.random(in: 0..<5, using: &generator) == 0
    let given = isWrong ? try unknownCode() : text
    var visitor = TestVisitor()
    let first = try challenge()
    var pairs: [([UInt8], [UInt8])] = []
    let isTaken = try visitor.use(given, for: purpose, seed: codeSeed, challenge: first) { message in
      pairs.append((linux.respond(message), small.respond(message)))
      return pairs.last!.0
    }
    for pair in pairs { note("\(purpose)", (pair.0, pair.1)) }
    guard isTaken else { return }
    if purpose == .unlock { unlockCount += 1 } else { activationCount += 1 }
    if purpose == .activation { secrets[user] = visitor.secrets }
  }

  private func unknownCode() throws -> String {
    var random = TestRandom(state: 7)
    return try OneUseCode.random(using: &random).text
  }

  /// Totals of unproved answers are written down when it suits a store: here, by both after each step.
  private func followUnproved() throws {
    let clock = realClock
    ledger.recordTotals(milliseconds: firmware.clock.monotonicMilliseconds(), realClock: clock, isForced: true)
    small.withStore { $0.rest(recordsTotals: true, realClock: clock) }
  }

  /// The difference between the two; nil if there is none.
  func difference() throws -> String? {
    guard answersAgree else { return "other answers" }
    let (summary, users, issuers) = (try ledger.summary(), try ledger.users(), try ledger.issuers())
    return try small.withStore { (store: inout TestStore) throws in
      for user in users {
        let record = try store.user(named: user.name)
        guard record == user.record else { return "\(user.record) and \(String(describing: record))" }
      }
      for issuer in issuers {
        let floor = try store.generationFloor(of: issuer.keyID)
        guard floor == issuer.generationFloor else { return "generation floors" }
      }
      guard store.index.userCount == users.count else { return "how many users" }
      guard store.state.clockFloor == summary.clockFloor else { return "clock floors" }
      return store.audit == summary.audit ? nil : "audit chains, \(store.audit.count) and \(summary.audit.count) long"
    }
  }
}
