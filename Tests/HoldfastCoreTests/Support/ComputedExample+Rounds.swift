import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ComputedExample {
  private static let everyRound = ["m1", "transcript", "nonce", "k-p2d", "k-d2p", "imp", "dmp", "m3"]

  /// The three rounds, as far as the document shows them.
  mutating func playRounds() throws {
    let device = try ExampleDevice()
    let token = self["token"]
    self["reference"] = [UInt8](try tokenReference(token.span, using: &cryptography).bytes)
    let shown = [
      ("cose", "", ["head", "request", "m2", "reply"]), ("reference", "reference-", ["head", "m2"]),
      ("jose", "jose-", ["prover-random", "m2-sha256"]),
    ]
    for (name, prefix, more) in shown {
      let round = try play(name, against: device)
      for label in Self.everyRound + more { self[prefix + label] = round[label] }
    }
  }

  private mutating func play(_ name: String, against device: ExampleDevice) throws -> ComputedRound {
    var round = ComputedRound(random: Array(hex(inputs.round(name)["head"]!)[2..<18]))
    round["m1"] = try challenge(name)
    let isReference = name == "reference"
    let (token, encoding): ([UInt8], TokenEncoding) =
      name == "jose" ? (self["jose-token"], .jose) : (self["token"], .cose)
    let sent = isReference ? self["reference"] : token
    ProofMessageHead.encode(
      random: fixed(round["prover-random"]), encoding: isReference ? .reference : encoding, token: sent.span,
      into: &round["head"])
    try prove(&round)
    var prover = try Prover(
      identity: Prover.Identity(
        deviceID: fixed(self["device-id"]), keyID: fixed(self["device-kid"]), proofKey: secret(self["mpk"]),
        integrity: secret(self["im"]), device: secret(self["dm"])),
      request: Request(command: "unlock"), token: token.span, encoding: encoding, isRemembered: isReference,
      cryptography: OpenSSLCryptography(), random: RepeatingRandom(round["prover-random"]))
    _ = try prover.receive(round["m1"].span)
    round["m2"] = prover.outgoing.array
    var hash = cryptography.sha256()
    hash.append(round["m2"].span)
    round["m2-sha256"] = [UInt8]((try hash.finish() as Digest).bytes)
    device.session.challenge.removeAll()
    try device.session.challenge.append(round["m1"].span)
    device.session.isChallengeOpen = true
    _ = device.respond(round["m2"])
    round["m3"] = hex(device.outgoing)
    return round
  }

  /// M1 around the example's challenge, decoded and encoded once more.
  private func challenge(_ name: String) throws -> [UInt8] {
    let given = hex(inputs.round(name)["m1"]!)
    let challenge = Challenge(
      deviceID: fixed(self["device-id"]), nonce: try Challenge(given.span).nonce, keyID: fixed(self["device-kid"]),
      required: .device, clock: 1_790_000_100)
    var first: [UInt8] = []
    challenge.encode(into: &first)
    var second: [UInt8] = []
    try Challenge(first.span).encode(into: &second)
    return second
  }

  /// The values that both ends derive from M1 and the head, and the sealed ones.
  private mutating func prove(_ round: inout ComputedRound) throws {
    let transcript = try Transcript(challenge: round["m1"].span, head: round["head"].span, using: &cryptography)
    let keys = try SessionKeys(
      proofKey: secret(self["mpk"]), device: secret(self["dm"]), transcript: transcript, using: &cryptography)
    round["transcript"] = [UInt8](transcript.hash.bytes)
    round["nonce"] = [UInt8](transcript.proofNonce.bytes)
    round["k-p2d"] = keys.proverToDevice.withBytes { [UInt8]($0) }
    round["k-d2p"] = keys.deviceToProver.withBytes { [UInt8]($0) }
    for (label, measurement) in [("imp", "im"), ("dmp", "dm")] {
      let proof = try measurementProof(
        key: secret(self["mpk"]), nonce: transcript.proofNonce, measurement: secret(self[measurement]),
        using: &cryptography)
      round[label] = [UInt8](proof.bytes)
    }
    Request(command: "unlock").encode(into: &round["request"])
    var reply = VerdictBody()
    let result = Array("unlocked".utf8)
    try reply.result.append(result.span)
    reply.encode(into: &round["reply"])
  }
}

/// The values of one round by their labels.
private struct ComputedRound {
  private var values: [String: [UInt8]] = [:]

  init(random: [UInt8]) {
    values["prover-random"] = random
  }

  subscript(label: String) -> [UInt8] {
    get { values[label] ?? [] }
    set { values[label] = newValue }
  }
}
