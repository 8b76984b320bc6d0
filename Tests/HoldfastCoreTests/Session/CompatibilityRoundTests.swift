import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The seed's round as written: off unless policy allows it, command by command.
@Suite struct CompatibilityRoundTests {
  let nonce: [UInt8] = [0x7f] + Array(repeating: 5, count: 15)

  private enum Given {
    case right, none
    case bytes([UInt8])
  }

  private func message(
    _ token: ExampleToken, nonce: [UInt8]? = nil, integrity: Given = .right, device: Given = .right,
    command: String = "unlock"
  ) throws -> [UInt8] {
    let nonce = nonce ?? self.nonce
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 7)
    bytes.appendCBOR(unsigned: 12)
    bytes.appendCBOR(bytes: nonce.span)
    bytes.appendCBOR(unsigned: 1)
    let token = try token.token()
    bytes.appendCBOR(bytes: token.span)
    try append(integrity, "im", nonce, to: &bytes)
    try append(device, "dm", nonce, to: &bytes)
    bytes.appendCBOR(text: Array(command.utf8).span)
    return bytes
  }

  private func append(_ given: Given, _ path: String, _ nonce: [UInt8], to message: inout [UInt8]) throws {
    switch given {
    case .right:
      let proof = try proof(path, nonce)
      message.appendCBOR(bytes: proof.span)
    case .bytes(let bytes): message.appendCBOR(bytes: bytes.span)
    case .none: message.appendCBORNull()
    }
  }

  private func proof(_ path: String, _ nonce: [UInt8]) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let example = WorkedExample.shared
    let proof = try measurementProof(
      key: secret(example.bytes("measurement.mpk")), nonce: fixed(nonce),
      measurement: secret(example.bytes("measurement.\(path)")), using: &cryptography)
    return [UInt8](proof.bytes)
  }

  private func device(allowing: Bool = true) throws -> ExampleDevice {
    let device = try ExampleDevice()
    device.policy.rules["unlock"]?.allowsCompatibility = allowing
    return device
  }

  private func respond(_ device: ExampleDevice, _ message: [UInt8]) throws -> Status {
    try device.session.makeChallenge()
    return device.respond(message).status
  }

  @Test func `it is refused unless policy allows the command`() throws {
    let strict = try device(allowing: false)
    #expect(try respond(strict, message(ExampleToken())) == .commandRefused)
    #expect(strict.lock.performed.isEmpty)
    let lenient = try device()
    #expect(try respond(lenient, message(ExampleToken(), command: "lock")) == .commandRefused)
    #expect(try respond(lenient, message(ExampleToken(), nonce: [1] + nonce.dropFirst())) == .accepted)
    #expect(lenient.outgoing == "830300f6")
    #expect(lenient.lock.performed == ["unlock"])
  }

  @Test func `a nonce counts once`() throws {
    let device = try device()
    #expect(try respond(device, message(ExampleToken())) == .accepted)
    #expect(try respond(device, message(ExampleToken())) == .deviceMismatch)
    #expect(device.lock.performed.count == 1)
  }

  @Test func `a nonce of a session's kind is malformed`() throws {
    let device = try device()
    #expect(try respond(device, message(ExampleToken(), nonce: [0x80] + nonce.dropFirst())) == .malformed)
  }

  @Test func `when no more nonces can be kept all are refused`() throws {
    let device = try device()
    device.store.capacity = 1
    #expect(try respond(device, message(ExampleToken())) == .accepted)
    #expect(try respond(device, message(ExampleToken(), nonce: [2] + nonce.dropFirst())) == .busy)
    #expect(device.lock.performed.count == 1)
  }

  @Test func `missing and wrong proofs are refused`() throws {
    let device = try device()
    let wrong = Given.bytes([UInt8](repeating: 1, count: 32))
    #expect(try respond(device, message(ExampleToken(), integrity: .none, device: .none)) == .deviceMismatch)
    #expect(try respond(device, message(ExampleToken(), device: wrong)) == .deviceMismatch)
    #expect(try respond(device, message(ExampleToken(), integrity: wrong, device: .none)) == .integrityMismatch)
    #expect(try respond(device, message(ExampleToken(), integrity: wrong)) == .integrityMismatch)
    #expect(
      try respond(device, message(ExampleToken(), nonce: [3] + nonce.dropFirst(), device: .none)) == .factorMissing)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `a token is remembered once its holder has proved the device, and only then`() throws {
    let device = try device()
    #expect(try respond(device, message(ExampleToken(), device: .none)) == .factorMissing)
    #expect(device.store.remembered.isEmpty)
    #expect(try respond(device, message(ExampleToken(), nonce: [4] + nonce.dropFirst())) == .accepted)
    #expect(device.store.remembered.count == 1)
  }

  @Test func `a session's proof is of no use in it`() throws {
    let device = try device()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover)
    // 85 02 59 length(2) head, then 58 20 before each proof.
    let start = 5 + Int(answer[3]) << 8 + Int(answer[4]) + 2
    let integrity = Array(answer[start..<start + 32])
    let proof = Array(answer[start + 34..<start + 66])
    let moved = try message(ExampleToken(), integrity: .bytes(integrity), device: .bytes(proof))
    #expect(try respond(device, moved) == .deviceMismatch)
  }
}
