import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ComputedExample {
  static let activationCode = "7ZK3-Q0M8-XWV5-T2D9-RHJQ-7"
  static let unlockCode = "7ZK3-Q0M8-XWV5-T2D9-RHJN-5"

  /// An activation of alice and an unlocking, between the core's two sides, and what they derive.
  mutating func playActivation() throws {
    self["client-private"] = [UInt8](repeating: 0x21, count: 32)
    self["fresh-private"] = [UInt8](repeating: 0x43, count: 32)
    let device = try deviceWithCodes()
    let m1 = hex(inputs.round("cose")["m1"]!)
    var user = ActivationSession(
      code: oneUseCode(Self.activationCode), for: .activation, cryptography: OpenSSLCryptography(),
      random: RepeatingRandom(self["client-private"]))
    _ = try user.receive(m1.span)
    self["activate"] = user.outgoing.array
    try device.challenge(with: "cose")
    _ = device.respond(self["activate"])
    self["granted"] = hex(device.outgoing)
    _ = try user.receive(self["granted"].span)
    try user.confirm()
    self["confirm"] = user.outgoing.array
    _ = device.respond(self["confirm"])
    self["activated"] = hex(device.outgoing)
    let activated = self["activated"]
    let step = try user.receive(activated.span)
    guard case .done = step, let grant = user.grant else {
      throw ActivationFault.malformed
    }
    var bytes: [UInt8] = []
    grant.encode(into: &bytes)
    self["grant"] = bytes
    try deriveActivation(m1)
    try playUnlocking(device, m1)
  }

  private func deviceWithCodes() throws -> ExampleDevice {
    let device = try ExampleDevice()
    device.session.random = RepeatingRandom(self["fresh-private"])
    for (id, purpose, text) in [
      (UInt64(1), OneUseCode.Purpose.activation, Self.activationCode), (2, .unlock, Self.unlockCode),
    ] {
      try device.store.issue(
        oneUseCode(text), id: id, for: purpose, of: "alice", expires: 1_790_000_700, otp: totpMethod,
        seal: .ocra(.usualSeal))
    }
    return device
  }

  /// The values between the messages, step by step.
  private mutating func deriveActivation(_ m1: [UInt8]) throws {
    let code = try oneUseCode(Self.activationCode).key(for: .activation, using: &cryptography)
    self["activation-code-key"] = code.withBytes { [UInt8]($0) }
    for side in ["client", "fresh"] {
      self["\(side)-point"] = [UInt8](
        try cryptography.p256PublicPoint(scalar: secret(self["\(side)-private"])).bytes)
    }
    let opening = try ActivationKeys.opening(
      challenge: m1.span, clientPoint: fixed(self["client-point"]), using: &cryptography)
    self["activation-opening"] = [UInt8](opening.bytes)
    var shared = Secret<32>()
    try cryptography.p256Agree(
      scalar: secret(self["client-private"]), peer: fixed(self["fresh-point"]), into: &shared)
    self["activation-shared-secret"] = shared.withBytes { [UInt8]($0) }
    let keys = try ActivationKeys(
      shared: shared, code: code, opening: opening, devicePoint: fixed(self["fresh-point"]), using: &cryptography)
    self["activation-transcript"] = [UInt8](keys.transcript.bytes)
    self["k-grant"] = keys.grant.withBytes { [UInt8]($0) }
    self["k-confirm"] = keys.client.withBytes { [UInt8]($0) }
    self["k-activated"] = keys.device.withBytes { [UInt8]($0) }
    self["otp-secret"] = keys.secrets.otp.withBytes { [UInt8]($0) }
    self["seal-secret"] = keys.secrets.seal.withBytes { [UInt8]($0) }
    self["host-secret"] = keys.secrets.host.withBytes { [UInt8]($0) }
  }

  private mutating func playUnlocking(_ device: ExampleDevice, _ m1: [UInt8]) throws {
    let key = try oneUseCode(Self.unlockCode).key(for: .unlock, using: &cryptography)
    self["unlock-code-key"] = key.withBytes { [UInt8]($0) }
    var user = ActivationSession(
      code: oneUseCode(Self.unlockCode), for: .unlock, cryptography: OpenSSLCryptography(),
      random: RepeatingRandom([1]))
    _ = try user.receive(m1.span)
    self["unlock"] = user.outgoing.array
    try device.challenge(with: "cose")
    _ = device.respond(self["unlock"])
    self["unlocked"] = hex(device.outgoing)
    let unlocked = self["unlocked"]
    let step = try user.receive(unlocked.span)
    guard case .done = step else { throw ActivationFault.malformed }
  }
}
