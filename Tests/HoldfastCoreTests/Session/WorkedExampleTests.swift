import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// One round in three encodings, both directions, with every intermediate value.
@Suite struct WorkedExampleTests {
  let example = WorkedExample.shared

  @Test(arguments: ["cose", "jose", "reference"])
  func `the transcript, the nonce and the session keys are the example's`(name: String) throws {
    let round = example.round(name)
    var cryptography = OpenSSLCryptography()
    let transcript = try Transcript(
      challenge: hex(round["m1"]!).span, head: hex(round["head"]!).span, using: &cryptography)
    #expect(hex(transcript.hash.bytes) == round["th"])
    #expect(hex(transcript.proofNonce.bytes) == round["nonce"])
    let keys = try SessionKeys(
      proofKey: secret(example.bytes("measurement.mpk")), device: secret(example.bytes("measurement.dm")),
      transcript: transcript, using: &cryptography)
    #expect(keys.proverToDevice.withBytes { hex($0) } == round["k_p2d"])
    #expect(keys.deviceToProver.withBytes { hex($0) } == round["k_d2p"])
  }

  @Test(arguments: ["cose", "jose", "reference"])
  func `the prover answers M1 with the example's M2 and reads its M3`(name: String) throws {
    let round = example.round(name)
    var prover = try Prover.example(name, remembered: name == "reference")
    guard case .send = try prover.receive(hex(round["m1"]!).span) else {
      Issue.record("the prover did not answer")
      return
    }
    #expect(hex(prover.outgoing.array) == round["m2"])
    guard case .done(let verdict) = try prover.receive(hex(round["m3"]!).span) else {
      Issue.record("the prover did not end")
      return
    }
    #expect(verdict.status == .accepted)
    #expect(verdict.isAuthenticated)
    #expect(hex(prover.reply.result.bytes) == hex(Array("unlocked".utf8).span))
  }

  @Test(arguments: ["cose", "jose", "reference"])
  func `the device answers M2 with the example's M3`(name: String) throws {
    let round = example.round(name)
    let device = try ExampleDevice()
    if name == "reference" { #expect(try device.respond(to: "cose").status == .accepted) }
    let response = try device.respond(to: name)
    #expect(response.status == .accepted)
    #expect(!response.closesConnection)
    #expect(device.outgoing == round["m3"])
    #expect(device.lock.performed.last == "unlock")
  }

  @Test func `the device writes the example's M1`() throws {
    let round = example.round("cose")
    var buffer = ByteBuffer<64>()
    let challenge = try Challenge(hex(round["m1"]!).span)
    try challenge.encode(into: &buffer)
    #expect(hex(buffer.bytes) == round["m1"])
    #expect(challenge.required == .device)
    #expect(challenge.clock == 1_790_000_100)
  }

  @Test func `the request is the example's, both ways`() throws {
    let round = example.round("cose")
    var buffer = ByteBuffer<64>()
    try Request(command: "unlock").encode(into: &buffer)
    #expect(hex(buffer.bytes) == round["request"])
    let request = try Request(hex(round["request"]!).span)
    #expect(request.command == "unlock")
  }

  @Test func `the COSE content key and its context are the example's`() throws {
    var cryptography = OpenSSLCryptography()
    var context = ByteBuffer<64>()
    try context.appendCOSEKeyContext(recipientProtected: example.bytes("cose.recipient_protected").span)
    #expect(hex(context.bytes) == example.text("cose.kdf_context"))
    var key = [UInt8](repeating: 0, count: 32)
    var output = key.mutableSpan
    try cryptography.hkdfSHA256(
      inputKey: example.bytes("keys.ecdh_shared_secret").span, salt: Span(), info: context.bytes, into: &output)
    #expect(hex(key.span) == example.text("cose.content_key"))
  }
}
