import HoldfastOpenSSL

import HoldfastCore

typealias TestUser = ActivationSession<OpenSSLCryptography, CountingRandom>

let activationText = "0000-0000-0000-0000-0001-1"
let otherText = "0000-0000-0000-0000-0002-2"

func oneUseCode(_ text: String) -> OneUseCode { OneUseCode(Array(text.utf8).span)! }

extension ExampleDevice {
  /// The owner issues a code to ann, by id.
  func issue(
    _ purpose: OneUseCode.Purpose = .activation, _ text: String = activationText, id: UInt64 = 1,
    lifetime: UInt64 = 600
  ) throws {
    var cryptography = OpenSSLCryptography()
    let key = try oneUseCode(text).key(for: purpose, using: &cryptography).withBytes { [UInt8]($0) }
    store.codes[id] = MemoryStore.CodeEntry(
      purpose: purpose, key: key, user: "ann", expires: clock.unix! + lifetime, otp: CodedDevice.totp,
      seal: CodedDevice.timeSeal)
  }

  /// M1.
  func opening() throws -> [UInt8] {
    try session.makeChallenge()
    return hex(hex(contentsOf: session.challenge))
  }

  /// What the device answers.
  func reply(to message: [UInt8], waited: UInt64 = 0) -> (response: RoundOutcome, message: [UInt8]) {
    let response = respond(message, waited: waited)
    return (response, hex(outgoing))
  }
}

extension ActivationSession where Crypto == OpenSSLCryptography, Random == CountingRandom {
  static func with(_ text: String, _ purpose: OneUseCode.Purpose = .activation, seed: UInt64 = 1) -> TestUser {
    TestUser(
      code: oneUseCode(text), for: purpose, cryptography: OpenSSLCryptography(), random: CountingRandom(state: seed))
  }

  /// What the user sends for `message`.
  mutating func answer(_ message: [UInt8]) throws -> [UInt8] {
    guard case .send = try receive(message.span) else { throw ActivationFault.malformed }
    return hex(hex(contentsOf: outgoing))
  }

  /// What the user sends once the grant in `message` is stored, and the secrets.
  mutating func confirmation(of message: [UInt8]) throws -> (message: [UInt8], secrets: [CodePurpose: [UInt8]]) {
    guard case .store = try receive(message.span) else { throw ActivationFault.malformed }
    let secrets: [CodePurpose: [UInt8]]? = withSecrets { secrets in
      [
        .otp: secrets.otp.withBytes { [UInt8]($0) }, .seal: secrets.seal.withBytes { [UInt8]($0) },
        .host: secrets.host.withBytes { [UInt8]($0) },
      ]
    }
    try confirm()
    return (hex(hex(contentsOf: outgoing)), secrets ?? [:])
  }

  mutating func fault(for message: [UInt8]) -> ActivationFault? {
    do throws(ActivationFault) {
      _ = try receive(message.span)
      return nil
    } catch { return error }
  }
}
