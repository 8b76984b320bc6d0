import HoldfastOpenSSL

import HoldfastCore

typealias Prover = ProverSession<OpenSSLCryptography, RepeatingRandom>

extension Prover {
  /// The worked example's prover, in the round that is named.
  static func example(_ name: String, remembered: Bool = false, command: BoundedText<32> = "unlock") throws -> Prover {
    let example = WorkedExample.shared
    let (token, encoding) = example.token(name)
    return try Prover(
      identity: try exampleIdentity(), request: Request(command: command), token: token.span, encoding: encoding,
      isRemembered: remembered, cryptography: OpenSSLCryptography(),
      random: RepeatingRandom(bytes: Array(hex(example.round(name)["head"]!)[2..<18])))
  }

  static func exampleIdentity() throws -> Identity {
    let example = WorkedExample.shared
    let challenge = try Challenge(hex(example.round("cose")["m1"]!).span)
    return Identity(
      deviceID: challenge.deviceID, keyID: challenge.keyID, proofKey: secret(example.bytes("measurement.mpk")),
      integrity: secret(example.bytes("measurement.im")), device: secret(example.bytes("measurement.dm")))
  }
}

/// The worked example's device around a store in memory.
final class ExampleDevice {
  let store: MemoryStore
  let policy = TestPolicy()
  let clock = ManualClock(1_790_000_100)
  let lock = CountingLock()
  var session: TestSession

  /// `store` is that of another connection of the same device.
  init(key: [UInt8]? = nil, bootCount: UInt64 = 1, connection: UInt64 = 1, store: MemoryStore = MemoryStore()) throws {
    self.store = store
    let example = WorkedExample.shared
    var cryptography = OpenSSLCryptography()
    let challenge = try Challenge(hex(example.round("cose")["m1"]!).span)
    let issuer = try P256PrivateKey(scalar: secret(example.bytes("keys.issuer_private"))).publicPoint
    store.issuers[try keyID(of: issuer, using: &cryptography)] = issuer
    store.floor = 1_790_000_000
    session = TestSession(
      deviceID: challenge.deviceID, keyID: challenge.keyID, cryptography: cryptography,
      key: try P256PrivateKey(scalar: secret(key ?? example.bytes("keys.device_private"))), store: store,
      policy: policy, random: RepeatingRandom(bytes: [7]), clock: clock,
      challenges: ChallengeSource(
        seed: secret([UInt8](repeating: 9, count: 32)), bootCount: bootCount, connection: connection))
  }

  var outgoing: String { hex(contentsOf: session.outgoing) }

  /// Has sent the M1 of a round of the example.
  func challenge(with name: String) throws {
    session.challenge.removeAll()
    try session.challenge.append(hex(WorkedExample.shared.round(name)["m1"]!).span)
    session.isChallengeOpen = true
  }

  /// Answers the M2 of a round of the example.
  func respond(to name: String, waited: UInt64 = 0) throws -> RoundOutcome {
    try challenge(with: name)
    return respond(hex(WorkedExample.shared.round(name)["m2"]!), waited: waited)
  }

  func respond(_ message: [UInt8], waited: UInt64 = 0) -> RoundOutcome {
    var lock = lock
    return session.respond(to: message.span, waitedMilliseconds: waited, actuator: &lock)
  }
}
