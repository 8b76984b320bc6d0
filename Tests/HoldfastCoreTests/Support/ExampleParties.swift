import HoldfastOpenSSL
import TestSupport

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
      random: RepeatingRandom(Array(hex(example.round(name)["head"]!)[2..<18])))
  }

  static func exampleIdentity() throws -> Identity {
    let example = WorkedExample.shared
    let challenge = try Challenge(hex(example.round("cose")["m1"]!).span)
    return Identity(
      deviceID: challenge.deviceID, keyID: challenge.keyID, proofKey: secret(example.bytes("measurement.mpk")),
      integrity: secret(example.bytes("measurement.im")), device: secret(example.bytes("measurement.dm")))
  }
}

enum ExampleEnvironment: DeviceEnvironment {
  typealias Crypto = OpenSSLCryptography
  typealias Key = P256PrivateKey
  typealias Store = MemoryStore
  typealias Rules = TestPolicy
  typealias Random = RepeatingRandom
  typealias Time = TestClock
}

/// A token for the worked example's device, at first a good one from the example's issuer.
@dynamicMemberLookup
struct ExampleToken {
  var claims: TestClaims
  var flaws = TokenFlaws()
  var issuer: TestIssuer

  init() {
    let example = WorkedExample.shared
    claims = TestClaims(for: fixed(hex("74348e8af6e1c57c37f453b0c7b78462")))
    (claims.issuedAt, claims.expires) = (1_790_000_000, 1_790_003_600)
    (claims.integrity, claims.device) = (example.bytes("measurement.im"), example.bytes("measurement.dm"))
    claims.proofKey = example.bytes("measurement.mpk")
    issuer = try! TestIssuer(scalar: example.bytes("keys.issuer_private"))
  }

  init(_ change: (inout ExampleToken) throws -> Void) rethrows {
    self.init()
    try change(&self)
  }

  subscript<Value>(dynamicMember claim: WritableKeyPath<TestClaims, Value>) -> Value {
    get { claims[keyPath: claim] }
    set { claims[keyPath: claim] = newValue }
  }

  func token() throws -> [UInt8] {
    try issuer.token(claims, to: fixed(WorkedExample.shared.bytes("keys.device_point")), flaws: flaws)
  }
}

/// The worked example's device around a store in memory.
final class ExampleDevice {
  let store: MemoryStore
  let policy = TestPolicy()
  let clock = TestClock(seconds: 1_790_000_100)
  let lock = CountingMachine()
  var session: DeviceSession<ExampleEnvironment>

  /// `store` is that of another connection of the same device.
  init(key: [UInt8]? = nil, bootCount: UInt64 = 1, connection: UInt64 = 1, store: MemoryStore = MemoryStore()) throws {
    self.store = store
    let example = WorkedExample.shared
    var cryptography = OpenSSLCryptography()
    let challenge = try Challenge(hex(example.round("cose")["m1"]!).span)
    let issuer = try P256PrivateKey(scalar: secret(example.bytes("keys.issuer_private"))).publicPoint
    store.issuers[try keyID(of: issuer, using: &cryptography)] = issuer
    store.floor = 1_790_000_000
    session = DeviceSession(
      deviceID: challenge.deviceID, keyID: challenge.keyID, cryptography: cryptography,
      key: try P256PrivateKey(scalar: secret(key ?? example.bytes("keys.device_private"))), store: store,
      policy: policy, random: RepeatingRandom([7]), clock: clock,
      challenges: ChallengeSource(
        seed: secret([UInt8](repeating: 9, count: 32)), bootCount: bootCount, connection: connection))
  }

  var outgoing: String { hex(session.outgoing.array) }

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

  /// Opens a token as this device does, and throws it away.
  func open(_ token: [UInt8]) throws {
    var cryptography = OpenSSLCryptography()
    var key = try P256PrivateKey(scalar: secret(WorkedExample.shared.bytes("keys.device_private")))
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    var trust = store
    var opener = TokenOpener()
    var verified = AuthenticatedToken()
    try opener.open(
      token.span, encoding: .cose, key: &key, keyID: id, trust: &trust, acceptsUnsigned: policy.acceptsUnsigned,
      acceptsMAC: policy.acceptsMAC, using: &cryptography, into: &verified)
  }
}
