import HoldfastCore
import HoldfastReplay
import TestSupport

/// The readers of the session's messages, and both ends of a session, with cryptography that believes everything.
let sessionTargets = [
  FuzzTarget("messages", messageSources) { bytes in
    var isTaken = false
    func isSame(_ rule: String, _ copy: (inout MessageBuffer) throws -> Void) throws {
      var buffer = MessageBuffer()
      do { try copy(&buffer) } catch { return note("refused: \(rule)") }
      isTaken = true
      try require(buffer.array == bytes, "\(rule) that is read and written again differs")
    }
    try isSame("M1") { try RoundTrip.challenge(bytes.span, into: &$0) }
    try isSame("M2") { try RoundTrip.answer(bytes.span, into: &$0) }
    try isSame("M3") { try RoundTrip.verdict(bytes.span, into: &$0) }
    try isSame("a request") { try RoundTrip.request(bytes.span, into: &$0) }
    try isSame("a message of an activation") { buffer in
      guard let message = try ActivationMessage(bytes.span) else { throw EncodingFault.unexpected }
      try message.encode(into: &buffer)
    }
    try isSame("a grant") { buffer in
      var demand: ProtectionDemand?
      let grant = try ActivationGrant(bytes.span, demand: &demand)
      if let demand { try grant.encode(with: demand, into: &buffer) } else { try grant.encode(into: &buffer) }
    }
    try isSame("an audit entry") { buffer in
      let entry = try AuditEntry(bytes.span)
      let head = try AuditEntry.head(of: bytes.span)
      try require(head == (entry.sequence, entry.time), "the head of an audit entry is read in two ways")
      try entry.encode(into: &buffer)
    }
    try moveLock(bytes)
    // A later version of the protocol may add members, which are not written again.
    let reply: VerdictBody
    do { reply = try VerdictBody(bytes.span) } catch {
      if isTaken { return }
      throw error
    }
    var written: [UInt8] = []
    reply.encode(into: &written)
    let again = try mustSucceed("a reply that was written is refused") { try VerdictBody(written.span) }
    note(written)
    try require(again.notice == reply.notice && again.result.array == reply.result.array, "a reply differs")
  },
  FuzzTarget("session-device", sessionSources, maximumByteCount: 8192) { bytes in
    var input = FuzzInput(bytes)
    let device = SessionDevice(input.byte())
    while !input.isEmpty { try device.answer(input.message()) }
  },
  FuzzTarget("session-prover", ["HoldfastCore/Session/ProverSession.swift"], maximumByteCount: 8192) { bytes in
    var input = FuzzInput(bytes)
    let first = input.byte()
    var session = try ProverSession(
      identity: .init(
        deviceID: DeviceID(), keyID: KeyID(), proofKey: Secret(), integrity: Secret(), device: Secret()),
      request: Request(command: "unlock"), token: [1, 2, 3].span, encoding: .cose, isRemembered: first & 1 == 0,
      cryptography: CredulousCryptography(), random: RepeatingRandom())
    while !input.isEmpty {
      let step = try session.receive(input.message().span)
      note(session.outgoing.array)
      if case .done(let outcome) = step {
        note("\(outcome.status) \(outcome.isAuthenticated)")
        try require(
          outcome.isAuthenticated || !outcome.status.needsAuthentication, "a status without a seal counts")
        return
      }
    }
  },
  FuzzTarget("session-user", ["HoldfastCore/Activation/ActivationSession.swift"], maximumByteCount: 2048) { bytes in
    var input = FuzzInput(bytes)
    var random = RepeatingRandom()
    var session = ActivationSession(
      code: try OneUseCode.random(using: &random), for: input.byte() & 1 == 0 ? .activation : .unlock,
      cryptography: CredulousCryptography(), random: random)
    while !input.isEmpty {
      let step = try session.receive(input.message().span)
      note("\(step)")
      note(session.outgoing.array)
      switch step {
      case .send: break
      case .store: try session.confirm()
      case .done: return
      }
    }
  },
]

/// Gives a command to the actuator of a lock, which carries out the commands that it names, and no others.
private func moveLock(_ bytes: [UInt8]) throws {
  guard let name = BoundedText<32>(bytes.span) else { return }
  var actuator = LockActuator(FreeLock())
  var result = ResultBuffer()
  let isDone = (try? actuator.perform(Request(command: name), result: &result)) != nil
  try require(isDone == actuator.carriesOut(name), "a lock carries out another command than it says")
  try require(isDone == !result.array.isEmpty, "a lock answers what it does not carry out")
}

private struct FreeLock: Lock {
  private(set) var current = LockState.locked
  mutating func move(to target: LockState) { current = target }
}

private let messageSources = [
  "HoldfastCore/Session/Challenge.swift", "HoldfastCore/Session/ProofMessage.swift",
  "HoldfastCore/Session/Verdict.swift",
  "HoldfastCore/Session/Request.swift", "HoldfastCore/Activation/ActivationMessages.swift",
  "HoldfastCore/Activation/ProtectionDemand.swift", "HoldfastCore/Audit/AuditEntry.swift",
  "HoldfastCore/Audit/AuditedCommand.swift", "HoldfastCore/OATH/CodeMethod.swift",
  "HoldfastCore/Session/Actuator.swift",
]

private let sessionSources = [
  "HoldfastCore/Session/DeviceSession.swift", "HoldfastCore/Session/Appraisal.swift",
  "HoldfastCore/Session/Appraisal+Codes.swift", "HoldfastCore/Session/Appraisal+Rejections.swift",
  "HoldfastCore/Session/Activation.swift", "HoldfastCore/Session/UserCommands.swift", "HoldfastCore/Policy/Rules.swift",
  "HoldfastCore/Policy/Decision.swift", "HoldfastCore/Policy/AppraisalInput.swift",
  "HoldfastCore/Codes/CodeSearch.swift",
  "HoldfastCore/Codes/UserRecord.swift", "HoldfastCore/Policy/RequestRecord.swift",
]

/// A device with one user, one of the owner's codes of each kind, and a machine that counts what it does.
private final class SessionDevice {
  private enum Environment: DeviceEnvironment {
    typealias Crypto = CredulousCryptography
    typealias Key = CredulousKey
    typealias Store = MemoryStore
    typealias Rules = LinuxPolicy
    typealias Random = RepeatingRandom
    typealias Time = TestClock
  }

  private var session: DeviceSession<Environment>
  private let machine = CountingMachine()

  /// The bits of `kind` choose what the policy accepts, whether there is a clock, and whether the owner demands a protection. With a
  /// demand and no clock, the code has just ended.
  init(_ kind: UInt8) {
    let (store, policy) = (MemoryStore(), TestPolicy())
    store.floor = testTime
    store.issuers[KeyID()] = CredulousKey().publicPoint
    store.bulletins[KeyID()] = BulletinList([BulletinList.Row(audience: AudienceID(), number: 5)])
    store.macKeys[KeyID(filledWith: 1)] = [UInt8](repeating: 0, count: 32)
    policy.acceptsUnsigned = kind & 1 != 0
    policy.acceptsMAC = kind & 2 != 0
    policy.rules["configure"] = CommandRule(factors: [.device, .otp])
    policy.rules["open-safe"] = CommandRule(factors: [.device, .otp, .seal], allowsCompatibility: true)
    policy.rules["user-sync"] = CommandRule(factors: .device, allowsCompatibility: true)
    for name in ["host-code", "user-state", "seal-request"] as [BoundedText<32>] {
      policy.rules[name] = CommandRule(factors: .device)
    }
    if kind & 128 != 0 { store.demands[1] = ProtectionDemand(pinLength: 6, needsKey: true) }
    var user = UserRecord(id: 1, lastAccepted: testTime)
    user.accounts[.otp] = CodeAccount(method: kind & 4 == 0 ? hotpMethod : totpMethod)
    user.accounts[.seal] = CodeAccount(method: kind & 8 == 0 ? counterSealMethod : challengeSealMethod)
    store.users[ann] = user
    for purpose in [CodePurpose.otp, .seal, .host] { store.secrets[purpose] = usersSecret }
    var random = RepeatingRandom()
    if let code = try? OneUseCode.random(using: &random) {
      try? store.issue(
        code, id: 1, for: kind & 16 == 0 ? .activation : .unlock, of: kind & 32 == 0 ? bob : ann,
        expires: testTime + (kind & 192 == 192 ? 0 : 100), otp: hotpMethod, seal: timeSealMethod)
    }
    session = DeviceSession(
      deviceID: DeviceID(), keyID: KeyID(), cryptography: CredulousCryptography(), key: CredulousKey(), store: store,
      policy: LinuxPolicy(base: policy), random: random, clock: TestClock(seconds: kind & 64 == 0 ? testTime : nil),
      challenges: ChallengeSource(seed: Secret(), bootCount: 1, connection: 1))
  }

  /// Answers one message.
  func answer(_ message: [UInt8]) throws {
    if !session.isChallengeOpen, session.activation == nil { try session.makeChallenge() }
    if let answer = session.respondToMail(message.span) { return try checkMail(answer) }
    let before = machine.performed.count
    var machine = machine
    let outcome = session.respond(to: message.span, waitedMilliseconds: 0, actuator: &machine)
    let answer = session.outgoing.array
    note(answer)
    if let verdict = try? VerdictMessage(answer.span) {
      try require(verdict.status == outcome.status, "M3 has another status than the round")
    } else {
      _ = try mustSucceed("an answer is no message") { try ActivationReply(answer.span).isReply }
    }
    let acted = machine.performed.count - before
    try require(acted == 0 || (acted == 1 && outcome.status == .accepted), "the machine acts without a verdict")
  }

  /// Checks the answer to a message about mail.
  private func checkMail(_ answer: MailAnswer) throws {
    note(answer.message)
    guard answer.outcome.isMail else {
      return try require(answer.outcome.closesConnection, "a refusal of mail does not end the connection")
    }
    if (try? PageAnswer(answer.message.span)) == nil {
      _ = try mustSucceed("an answer to mail is none") { try BulletinAnswer(answer.message.span) }
    }
    try require(session.isChallengeOpen, "mail uses up the challenge")
  }
}

extension ActivationReply {
  fileprivate var isReply: Bool { true }
}
