import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ExampleDevice {
  /// Runs one round between a prover and this device, message by message; `tamper` sees M2 on its way.
  func round(
    _ prover: inout Prover, waited: UInt64 = 0, tamper: (inout [UInt8]) -> Void = { _ in }
  ) throws -> (response: RoundOutcome, step: ProverStep) {
    let answer = try answer(from: &prover, tamper: tamper)
    let response = respond(answer, waited: waited)
    return (response, try prover.receive(hex(outgoing).span))
  }

  /// The status of a round that asks for `request` with this token.
  func status(of token: ExampleToken, request: consuming Request) throws -> Status {
    var prover = try Prover.with(try token.token(), request: request)
    return try round(&prover).response.status
  }

  /// The M2 of a prover to a fresh M1 of this device.
  func answer(from prover: inout Prover, tamper: (inout [UInt8]) -> Void = { _ in }) throws -> [UInt8] {
    try session.makeChallenge()
    let challenge = session.challenge.array
    guard case .send = try prover.receive(challenge.span) else { throw ProverFault.malformed }
    var message = prover.outgoing.array
    tamper(&message)
    return message
  }

  /// The status of a round with this token.
  func status(
    of token: ExampleToken, command: BoundedText<32> = "unlock", integrity: [UInt8]? = nil, device: [UInt8]? = nil
  ) throws -> Status {
    var prover = try Prover.with(try token.token(), command: command, integrity: integrity, device: device)
    return try round(&prover).response.status
  }
}

extension Prover {
  static func with(
    _ token: [UInt8], command: BoundedText<32> = "unlock", request: consuming Request? = nil, remembered: Bool = false,
    integrity: [UInt8]? = nil, device: [UInt8]? = nil
  ) throws -> Prover {
    let example = WorkedExample.shared
    let challenge = try Challenge(hex(example.round("cose")["m1"]!).span)
    return try Prover(
      identity: Identity(
        deviceID: challenge.deviceID, keyID: challenge.keyID, proofKey: secret(example.bytes("measurement.mpk")),
        integrity: secret(integrity ?? example.bytes("measurement.im")),
        device: secret(device ?? example.bytes("measurement.dm"))),
      request: request ?? Request(command: command), token: token.span, encoding: .cose, isRemembered: remembered,
      cryptography: OpenSSLCryptography(), random: RepeatingRandom([3]))
  }
}
