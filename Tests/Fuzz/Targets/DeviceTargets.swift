import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import TestSupport

/// The readers of a device on Linux: policies, actuators and TPMs.
let deviceTargets = [
  FuzzTarget("policy", policySources) { bytes in
    let policy = try DevicePolicy(json: bytes)
    let text = policy.json()
    let again = try mustSucceed("a policy that was written is refused") { try DevicePolicy(json: text) }
    try require(again == policy && again.json() == text, "a policy that is written and read again differs")
  },
  FuzzTarget("signed-policy", policySources + ["HoldfastDevice/Policy/SignedPolicy.swift"]) { bytes in
    let device = DeviceID(filledWith: 0xd1)
    _ = try? SignedPolicy(bytes, by: Signer.point, for: device)
    let text = try Signer.sign(bytes, type: SignedPolicy.type)
    let policy = try SignedPolicy(text, by: Signer.point, for: device)
    let ended = try mustSucceed("a line end changes a signed policy") {
      try SignedPolicy(text + [0x0a], by: Signer.point, for: device)
    }
    try require(ended == policy, "a line end changes a signed policy")
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
      _ = try? ActuatorCBOR.commands(message)
      _ = try? ActuatorJSON.commands(message)
      for answer in [try? ActuatorCBOR.answer(message), try? ActuatorJSON.answer(message)] {
        guard case .done(let result)? = answer?.outcome else { continue }
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
      try require(ActuatorAddress(address.description) == address, "the address of an actuator differs")
    }
    if let template = RequestTemplate(text) { _ = template.filled(with: ["a", text]) }
  },
  FuzzTarget("tpm", ["HoldfastDevice/Anchor/TPM.swift"], maximumByteCount: 128) { bytes in
    if bytes.count >= TPMResponse.headByteCount, let count = TPMResponse.byteCount(of: bytes.span) {
      try require((10...64).contains(count), "a response of a TPM has an impossible length")
    }
    switch try TPMResponse(bytes.span) {
    case .success(let parameters): try require(parameters.count <= 64, "a response of a TPM is too long")
    case .failure(let code):
      try require(code.rawValue != 0, "a success of a TPM is a failure")
      _ = (code.wantsRetry, code.fault(isOwners: true), code.fault(isOwners: false))
    }
  },
]

private let policySources = [
  "HoldfastDevice/Policy/DevicePolicy+JSON.swift", "HoldfastDevice/Policy/DevicePolicy.swift",
  "HoldfastDevice/Policy/CommandConditions+JSON.swift", "HoldfastDevice/Policy/CommandConditions.swift",
]

private func take(from input: inout ActuatorInput) throws -> [[UInt8]] {
  var messages: [[UInt8]] = []
  while let message = try input.next() { messages.append(message) }
  return messages
}
