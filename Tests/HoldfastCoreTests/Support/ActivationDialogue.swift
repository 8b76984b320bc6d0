import HoldfastOpenSSL
import TestSupport

import HoldfastCore

typealias TestUser = ActivationSession<OpenSSLCryptography, TestRandom>

let activationText = "0000-0000-0000-0000-0001-1"
let otherText = "0000-0000-0000-0000-0002-2"

func oneUseCode(_ text: String) -> OneUseCode { OneUseCode(Array(text.utf8).span)! }

extension ExampleDevice {
  /// The owner issues a code to ann, by id.
  func issue(
    _ purpose: OneUseCode.Purpose = .activation, _ text: String = activationText, id: UInt64 = 1,
    lifetime: UInt64 = 600
  ) throws {
    try store.issue(
      oneUseCode(text), id: id, for: purpose, of: "ann", expires: clock.seconds! + lifetime, otp: totpMethod,
      seal: timeSealMethod)
  }

  /// M1.
  func opening() throws -> [UInt8] {
    try session.makeChallenge()
    return session.challenge.array
  }

  /// The answer of the device.
  func reply(to message: [UInt8], waited: UInt64 = 0) -> (response: RoundOutcome, message: [UInt8]) {
    let response = respond(message, waited: waited)
    return (response, hex(outgoing))
  }
}

extension ActivationSession where Crypto == OpenSSLCryptography, Random == TestRandom {
  static func with(_ text: String, _ purpose: OneUseCode.Purpose = .activation, seed: UInt64 = 1) -> TestUser {
    TestUser(
      code: oneUseCode(text), for: purpose, cryptography: OpenSSLCryptography(), random: TestRandom(state: seed))
  }

  /// The user's answer to `message`.
  mutating func answer(_ message: [UInt8]) throws -> [UInt8] {
    guard case .send = try receive(message.span) else { throw ActivationFault.malformed }
    return outgoing.array
  }

  /// The user's message once the grant in `message` is stored, and the secrets.
  mutating func confirmation(of message: [UInt8]) throws -> (message: [UInt8], secrets: [CodePurpose: [UInt8]]) {
    guard case .store = try receive(message.span) else { throw ActivationFault.malformed }
    let secrets: [CodePurpose: [UInt8]]? = withSecrets { secrets in
      [
        .otp: secrets.otp.withBytes { [UInt8]($0) }, .seal: secrets.seal.withBytes { [UInt8]($0) },
        .host: secrets.host.withBytes { [UInt8]($0) },
      ]
    }
    try confirm()
    return (outgoing.array, secrets ?? [:])
  }

  mutating func fault(for message: [UInt8]) -> ActivationFault? {
    do throws(ActivationFault) {
      _ = try receive(message.span)
      return nil
    } catch { return error }
  }
}
