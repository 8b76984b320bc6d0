import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import TestSupport

/// The readers of a device on Linux: policies and actuators.
let deviceTargets = [
  FuzzTarget("policy", policySources) { bytes in
    let policy = try DevicePolicy(json: bytes)
    let text = policy.json()
    let again = try mustSucceed("a policy that was written is refused") { try DevicePolicy(json: text) }
    try require(again == policy && again.json() == text, "a policy that is written and read again differs")
    note(text)
    let commands = policy.commands.sorted { [UInt8]($0.key.bytes).lexicographicallyPrecedes([UInt8]($1.key.bytes)) }
    for (name, rule) in commands {
      try checkConditions(of: name, rule, in: policy)
    }
    try checkSession(of: policy)
    guard let small = FirmwarePolicy(policy), let whole = DevicePolicy(small) else { return note("not for a board") }
    try require(whole.commands == policy.commands, "a small device gets other rules")
  },
  FuzzTarget("signed-policy", policySources + ["HoldfastDevice/Policy/SignedPolicy.swift"]) { bytes in
    let device = DeviceID(filledWith: 0xd1)
    attempt { _ = try SignedPolicy(bytes, by: Signer.point, for: device) }
    let text = try Signer.sign(bytes, type: SignedPolicy.type)
    let policy = try SignedPolicy(text, by: Signer.point, for: device)
    let ended = try mustSucceed("a line end changes a signed policy") {
      try SignedPolicy(text + [0x0a], by: Signer.point, for: device)
    }
    try require(ended == policy, "a line end changes a signed policy")
    note("\(policy.number)")
    var trust = PolicyTrust(key: Signer.point)
    try mustSucceed("the first policy is outdated") { try trust.check(policy) }
    (trust.number, trust.digest) = (policy.number, policy.digest)
    try mustSucceed("the newest policy is outdated") { try trust.check(policy) }
    trust.digest = Digest()
    try require((try? trust.check(policy)) == nil, "two policies have one number")
  },
  FuzzTarget(
    "actuator",
    ["HoldfastDevice/Actuator/ActuatorFraming.swift", "HoldfastDevice/Actuator/ActuatorMessage.swift"]
  ) { bytes in
    guard let first = bytes.first else { return }
    let framing = [ActuatorFraming.lengths, .lines, .packets][Int(first) % 3]
    let limit = framing == .lines ? ActuatorJSON.maximumByteCount : ActuatorCBOR.maximumByteCount
    var whole = ActuatorInput(framing: framing, maximumByteCount: limit)
    whole.append(bytes.dropFirst())
    let messages = try take(from: &whole)
    if framing != .packets {
      var split = ActuatorInput(framing: framing, maximumByteCount: limit)
      var again: [[UInt8]] = []
      for byte in bytes.dropFirst() {
        split.append([byte])
        again += try mustSucceed("bytes that come one by one are refused") { try take(from: &split) }
      }
      try require(again == messages, "bytes that come one by one are other messages")
    }
    for message in messages {
      note(message)
      for commands in [attempt { try ActuatorCBOR.commands(message) }, attempt { try ActuatorJSON.commands(message) }] {
        let names = (commands ?? []).map { [UInt8]($0.bytes) }
        for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) { note(name) }
      }
      for answer in [attempt { try ActuatorCBOR.answer(message) }, attempt { try ActuatorJSON.answer(message) }] {
        guard case .done(let result)? = answer?.outcome else { continue }
        note(result)
        try require(result.count <= ResultBuffer.capacity, "a result of an actuator is too long")
      }
    }
  },
  FuzzTarget(
    "addresses", ["HoldfastDevice/Actuator/ActuatorAddress.swift", "HoldfastDevice/Policy/RequestTemplate.swift"],
    maximumByteCount: 256
  ) { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let address = ActuatorAddress(text) {
      note(address.description)
      try require(ActuatorAddress(address.description) == address, "the address of an actuator differs")
    }
    if let template = RequestTemplate(text) {
      let filled = template.filled(with: ["a", text])
      note("\(filled)")
    }
  },
]

private let policySources = [
  "HoldfastDevice/Policy/DevicePolicy+JSON.swift", "HoldfastDevice/Policy/DevicePolicy.swift",
  "HoldfastDevice/Policy/CommandConditions+JSON.swift", "HoldfastDevice/Policy/CommandConditions.swift",
]

/// Asks for the rule of requests with many parameters, with and without a clock. No condition takes a factor away.
private func checkConditions(of name: BoundedText<32>, _ rule: CommandRule, in policy: DevicePolicy) throws {
  let live = SessionPolicy()
  live.current = policy
  let token = AuthenticatedToken()
  let asked = BoundedText<64>(name.description) ?? BoundedText()
  for parameters in [[], ["a"], ["5", "a"], ["0", "09"], ["999999999999999999"]] as [[BoundedText<64>]] {
    for time in [nil, 0, testTime] as [UInt64?] {
      var request = Request(command: name)
      var seal = Request(command: UserCommandName.sealRequest)
      for parameter in ["ann", asked] + parameters { try seal.append(parameter: parameter) }
      for parameter in parameters { try request.append(parameter: parameter) }
      let needed = live.rule(for: request, of: token, realClock: time)?.factors
      try require(needed?.isSuperset(of: rule.factors) ?? true, "a condition takes a factor away")
      let sealed = live.rule(for: seal, of: token, realClock: time)?.factors
      note("\(String(describing: needed)) \(String(describing: sealed))")
      let same = policy.rule(for: request, of: token, realClock: time)?.factors
      try require(same == needed, "a policy has two rules for a request")
      let audited = try policy.auditedParameters(of: request)
      note("\(audited.count)")
      try require(audited.count <= parameters.count, "more parameters are audited than there are")
    }
  }
  try require(rule.factors.isSuperset(of: live.commonFactors), "a common factor is not common")
}

/// Checks that a session has the rules of its policy.
private func checkSession(of policy: DevicePolicy) throws {
  let live = SessionPolicy()
  live.current = policy
  let isSame =
    live.acceptsUnsigned == policy.acceptsUnsigned && live.acceptsMAC == policy.acceptsMAC
    && live.acceptsDevelopment == policy.acceptsDevelopment && live.commonFactors == policy.commonFactors
    && live.maximumIssueAdvanceSeconds == policy.maximumIssueAdvanceSeconds && live.auditHome == policy.auditHome
    && live.limits.generationFloor == policy.limits.generationFloor
    && live.codeLimits.counterLookAhead == policy.codeLimits.counterLookAhead
    && live.mayIntroduce(KeyID()) == policy.mayIntroduce(KeyID())
  try require(isSame, "a session has other rules than its policy")
  for (name, rule) in policy.commands {
    try require(live.rule(for: name)?.factors == rule.factors, "a session has another rule than its policy")
  }
  let knows = [
    SessionPolicy.knowsUserState, SessionPolicy.knowsAuthenticators, SessionPolicy.knowsSealRequests,
    SessionPolicy.knowsBulletins,
  ]
  try require(knows.allSatisfy { $0 }, "a session of a device on Linux lacks something")
}

private func take(from input: inout ActuatorInput) throws -> [[UInt8]] {
  var messages: [[UInt8]] = []
  while let message = try input.next() { messages.append(message) }
  return messages
}
