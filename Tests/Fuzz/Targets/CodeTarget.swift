import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// A device on Linux with real cryptography, and users who give it right codes, used ones, refusals and wrong ones, over each command
/// and at any time. No code counts twice, and no position goes back.
let codeTarget = FuzzTarget("codes", codeSources, maximumByteCount: 256, variantCount: 16) { bytes in
  var input = FuzzInput(bytes)
  let device = try CodedDevice(input.byte())
  while !input.isEmpty { try device.run(&input) }
}

private let codeSources = [
  "HoldfastCore/Session/Appraisal.swift", "HoldfastCore/Session/Appraisal+Codes.swift",
  "HoldfastCore/Session/Appraisal+Rejections.swift", "HoldfastCore/Session/UserCommands.swift",
  "HoldfastCore/Codes/CodeSearch.swift", "HoldfastCore/Codes/UserRecord.swift",
]

private let spare: BoundedText<32> = "spare"
private let names = [ann, spare, bob]
private let requests: [(command: String, parameters: [String])] = [
  ("lock", []), ("lock", ["a"]), ("unlock", []), ("open", ["a", "b"]), ("user-state", ["ann"]), ("user-state", []),
  ("user-state", ["zoe"]), ("user-sync", ["spare"]), ("host-code", ["ann", "0123456789abcdef"]), ("host-code", ["ann"]),
  ("seal-request", ["ann", "lock"]), ("seal-request", ["spare", "open", "a", "b"]),
  ("lock", ["more than sixteen characters"]),
  ("host-code", ["ann", "0123456789abcdeg"]), ("host-code", ["spare", "0123456789ABCDEF"]), ("user-sync", ["zoe"]),
]
private let deviceScalar = [UInt8](repeating: 0, count: 31) + [2]
private let deviceID = DeviceID(filledWith: 0xd1)
private let issuer = try! TestIssuer(scalar: [UInt8](repeating: 0, count: 31) + [3])
private let devicePoint = try! P256PrivateKey(scalar: secret(deviceScalar)).publicPoint
/// A prover of anyone, one of Ann, and one with a token of a later generation.
private let provers = [(nil, 1), ("ann", 1), (nil, 2)].map { (user: String?, generation: UInt64) in
  var claims = TestClaims(for: deviceID)
  (claims.user, claims.generation, claims.expires) = (user, generation, testTime + 100_000)
  return TestProver(claims, token: try! issuer.token(claims, to: devicePoint))
}

private final class CodedDevice {
  private enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Store = MemoryStore
    typealias Rules = LinuxPolicy
    typealias Random = RepeatingRandom
    typealias Time = TestClock
  }

  private struct Position: Hashable {
    let user: BoundedText<32>
    let purpose: CodePurpose
    let number: UInt64
  }

  private var session: DeviceSession<Environment>
  private let store: MemoryStore
  private let clock: TestClock
  private let machine = CountingMachine()
  private var usedUp: Set<Position> = []

  /// `kind` chooses the methods of both codes, and whether there is a clock.
  init(_ kind: UInt8) throws {
    store = try MemoryStore(trusting: issuer.point)
    store.floor = testTime
    store.mainUsers[spare] = ann
    for purpose in [CodePurpose.otp, .seal, .host] { store.secrets[purpose] = usersSecret }
    for (id, name) in [ann, spare].enumerated() {
      var user = UserRecord(id: UInt64(id) + 1, lastAccepted: testTime)
      let passwords = [hotpMethod, totpMethod, challengeSealMethod][Int(kind % 3)]
      let seals = [counterSealMethod, timeSealMethod, challengeSealMethod][Int(kind / 3 % 3)]
      (user.accounts[.otp], user.accounts[.seal]) = (CodeAccount(method: passwords), CodeAccount(method: seals))
      store.users[name] = user
    }
    let policy = TestPolicy()
    policy.rules["lock"] = CommandRule(factors: [.device, .seal])
    policy.rules["unlock"] = CommandRule(factors: [.device, .otp])
    policy.rules["open"] = CommandRule(factors: [.integrity, .device, .otp, .seal])
    for name in ["user-state", "user-sync", "host-code", "seal-request"] as [BoundedText<32>] {
      policy.rules[name] = CommandRule(factors: .device)
    }
    clock = TestClock(seconds: kind < 0x80 ? testTime : nil)
    var cryptography = OpenSSLCryptography()
    session = DeviceSession(
      deviceID: deviceID, keyID: try keyID(of: devicePoint, using: &cryptography), cryptography: cryptography,
      key: try P256PrivateKey(scalar: secret(deviceScalar)), store: store, policy: LinuxPolicy(base: policy),
      random: RepeatingRandom(), clock: clock,
      challenges: ChallengeSource(seed: Secret(), bootCount: 1, connection: 1))
  }

  /// Runs one round, which four bytes describe.
  func run(_ input: inout FuzzInput) throws {
    let (choice, giving, place, pause) = (input.byte(), input.byte(), input.byte(), input.byte())
    let isLong = choice & 0x80 != 0
    clock.seconds = clock.seconds.map { $0 + UInt64(pause) * (isLong ? 60 : 1) }
    let (command, parameters) = requests[Int(choice & 15)]
    let who = Int(choice >> 4 & 7)
    let name = names[who % names.count]
    let offset = Int64(Int8(bitPattern: place))
    let otp = try code(giving & 3, .otp, offset, name, command, parameters)
    let seal = try code(giving >> 2 & 3, .seal, offset, name, command, parameters)
    try session.makeChallenge()
    let prover = provers[who / names.count]
    let answer = try prover.answer(
      session.challenge.array, command: command, parameters: parameters,
      flaws: giving & 0x10 == 0 ? [] : .asReference, otp: otp?.code, seal: seal?.code,
      number: giving & 0x20 == 0 ? nil : UInt64(giving >> 6))
    let (count, users) = (machine.performed.count, store.users)
    var machine = machine
    let outcome = session.respond(to: answer.message.span, waitedMilliseconds: 0, actuator: &machine)
    note("\(outcome.status)")
    let verdict = try mustSucceed("an answer cannot be opened") {
      try prover.open(session.outgoing.array, after: answer)
    }
    note("\(verdict) \(store.users.sorted { $0.value.id < $1.value.id })")
    try require(verdict.status == outcome.status, "M3 has another status than the round")
    let acted = machine.performed.count - count
    try require(acted == 0 || (acted == 1 && outcome.status == .accepted), "the machine acts without a verdict")
    if acted == 1 { try useUp([otp, seal], by: name) }
    for (name, before) in users {
      for purpose in CodePurpose.given {
        guard let old = before.accounts[purpose], let new = store.users[name]?.accounts[purpose] else { continue }
        try require(old.nextPosition <= new.nextPosition, "a position goes back")
      }
    }
  }

  /// Notes the codes that made the machine act.
  private func useUp(_ codes: [GivenCode?], by name: BoundedText<32>) throws {
    for case let given? in codes {
      guard given.isNeeded, let number = given.position else { continue }
      let isNew = usedUp.insert(Position(user: name, purpose: given.purpose, number: number)).inserted
      try require(isNew, "a code counts twice")
    }
  }

  private struct GivenCode {
    let code: UserCode
    let purpose: CodePurpose
    /// The counter or the time step; nil for a code over a challenge.
    let position: UInt64?
    let isNeeded: Bool
  }

  /// Returns no code, a right one, a refusal, or a wrong one.
  private func code(
    _ kind: UInt8, _ purpose: CodePurpose, _ offset: Int64, _ name: BoundedText<32>, _ command: String,
    _ parameters: [String]
  ) throws -> GivenCode? {
    guard kind > 0 else { return nil }
    let method = (store.users[name] ?? store.users[ann]!).accounts[purpose]!.method
    let next = store.users[name]?.accounts[purpose]?.nextPosition ?? 0
    let present = method.timeStepSeconds.map { (clock.seconds ?? store.floor) / $0 } ?? next
    let position = UInt64(clamping: Int64(present) + offset)
    let challenge = store.users[name]?.challenge.map { [UInt8]($0.bytes.bytes) } ?? []
    var given: UserCode
    if purpose == .otp {
      given = try password(position, user: name)
      if case .ocra(let suite) = method {
        let digits = Array(hex(challenge).utf8)
        guard let question = OCRAQuestion(challengeDigits: digits.span, for: suite) else { return nil }
        var cryptography = OpenSSLCryptography()
        let key = usersSecret
        given = UserCode(
          user: name,
          code: try OCRA.code(suite: suite, key: key.span, input: OCRAInput(question: question), using: &cryptography))
      }
    } else {
      given = try seal(
        method, position, challenge: challenge, BoundedText(command)!, parameters.map { BoundedText($0)! },
        isRefusal: kind == 2, user: name)
    }
    if kind == 3 { given = UserCode(user: name, code: BoundedText("00000000")) }
    let rule = session.policy.rule(for: BoundedText<32>(command)!)
    let isFresh = method.isCounted || method.timeStepSeconds != nil
    return GivenCode(
      code: given, purpose: purpose, position: isFresh ? position : nil,
      isNeeded: rule?.factors.contains(purpose == .otp ? .otp : .seal) ?? false)
  }
}
