import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// Seals in whole rounds.
@Suite struct SealRoundTests {
  private let parameters: [BoundedText<64>] = ["7", "open now"]

  @Test func `a seal over exactly this command and its parameters is accepted, once`() throws {
    for method in [counterSealMethod, timeSealMethod] {
      let coded = try CodedDevice([.device, .seal], seal: method)
      let position = method == counterSealMethod ? 0 : coded.now / 60
      let seal = try coded.seal(position, "unlock", parameters)
      #expect(try coded.ask(seal: seal, parameters: parameters) == .accepted)
      #expect(try coded.ask(seal: seal, parameters: parameters) == .sealRejected)
      #expect(coded.ann.accounts[.seal]?.nextPosition == position + 1 && coded.device.lock.performed.count == 1)
    }
  }

  @Test func `a seal over anything else is refused`() throws {
    let coded = try CodedDevice([.device, .seal], seal: counterSealMethod)
    let others: [(BoundedText<32>, [BoundedText<64>])] = [
      ("lock", parameters), ("unloc", parameters), ("unlock", []), ("unlock", ["7"]), ("unlock", ["open now", "7"]),
      ("unlock", ["7", "open now", ""]), ("unlock", ["7open now"]), ("unlock", ["7", "open  now"]),
      ("unlock", ["7", "Open now"]), ("unlock", ["8", "open now"]),
    ]
    for (command, sealed) in others {
      coded.ann.unlock()
      #expect(try coded.ask(seal: coded.seal(0, command, sealed), parameters: parameters) == .sealRejected)
    }
    #expect(coded.device.lock.performed.isEmpty && coded.ann.accounts[.seal]?.nextPosition == 0)
  }

  @Test func `a list of parameters that is absent is sealed as an empty one`() throws {
    let coded = try CodedDevice([.device, .seal], seal: counterSealMethod)
    #expect(try coded.ask(seal: coded.seal(0), parameters: nil) == .accepted)
    #expect(try coded.ask(seal: coded.seal(1), parameters: []) == .accepted)
  }

  @Test func `parameters under a seal have as many characters as policy says, and none without`() throws {
    let coded = try CodedDevice([.device, .seal], seal: counterSealMethod)
    let sixteen: BoundedText<64> = "ääääääääääääääää"
    let seventeen: BoundedText<64> = "12345678901234567"
    #expect(try coded.ask(seal: coded.seal(0, "unlock", [sixteen]), parameters: [sixteen]) == .accepted)
    let before = coded.ann
    #expect(try coded.ask(seal: coded.seal(1, "unlock", [seventeen]), parameters: [seventeen]) == .commandRefused)
    #expect(try coded.ask(seal: coded.seal(1), parameters: ["", seventeen]) == .commandRefused)
    #expect(coded.ann == before)
    coded.device.policy.codeLimits.sealParameterLength = 17
    #expect(try coded.ask(seal: coded.seal(1, "unlock", [seventeen]), parameters: [seventeen]) == .accepted)
    let free = try CodedDevice([.device])
    #expect(try free.ask(seal: "00000000", parameters: [seventeen]) == .accepted)
  }

  @Test func `eight parameters of the greatest length are sealed`() throws {
    let coded = try CodedDevice([.device, .seal], seal: counterSealMethod)
    coded.device.policy.codeLimits.sealParameterLength = 64
    let long = BoundedText<64>(String(repeating: "x", count: 64))!
    let eight = Array(repeating: long, count: 8)
    #expect(try coded.ask(seal: coded.seal(0, "unlock", eight), parameters: eight) == .accepted)
  }

  @Test func `a seal of a counter far off is accepted with the next one, whatever both are over`() throws {
    let coded = try CodedDevice([.device, .seal], seal: counterSealMethod)
    #expect(try coded.ask(seal: coded.seal(60, "unlock", ["1"]), parameters: ["1"]) == .sealRejected)
    #expect(try coded.ask(seal: coded.seal(61, "unlock", ["2"]), parameters: ["1"]) == .sealRejected)
    #expect(try coded.ask(seal: coded.seal(62, "unlock", ["1"]), parameters: ["1"]) == .sealRejected)
    #expect(try coded.ask(seal: coded.seal(63, "unlock", ["2"]), parameters: ["2"]) == .accepted)
  }

  @Test func `both codes: one right and one wrong are both used up, and the failure stays`() throws {
    let coded = try CodedDevice([.device, .otp, .seal], otp: hotpMethod, seal: counterSealMethod)
    #expect(try coded.ask(otp: coded.otp(0), seal: "00000000") == .sealRejected)
    #expect(coded.ann.accounts[.otp]?.nextPosition == 1 && coded.ann.failureCount == 1)
    #expect(try coded.ask(otp: "000000", seal: coded.seal(0)) == .otpRejected)
    #expect(coded.ann.accounts[.seal]?.nextPosition == 1 && coded.ann.failureCount == 2)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(1)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(1), seal: coded.seal(1)) == .sealRejected)
    #expect(coded.device.lock.performed.isEmpty && coded.ann.failureCount == 4)
    #expect(try coded.ask(otp: coded.otp(2), seal: coded.seal(2)) == .accepted)
    #expect(coded.ann.failureCount == 0)
  }

  @Test func `a seal is no one-time password, nor the other way round`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod, seal: counterSealMethod)
    #expect(try coded.ask(otp: coded.seal(0)) == .otpRejected)
    let other = try CodedDevice([.device, .seal], otp: hotpMethod, seal: counterSealMethod)
    #expect(try other.ask(seal: other.otp(0)) == .sealRejected)
  }

  @Test func `a seal over a device's challenge is good for five minutes, and once`() throws {
    let coded = try CodedDevice([.device, .seal], seal: challengeSealMethod)
    let challenge: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    func ask() { coded.ann.challenge = IssuedChallenge(bytes: fixed(challenge), expires: coded.now + 300) }
    let seal = try coded.seal(0, "unlock", [], challenge: challenge)
    #expect(try coded.ask(seal: seal) == .sealRejected)
    #expect(coded.ann.failureCount == 0)
    ask()
    #expect(try coded.ask(seal: seal) == .accepted)
    #expect(coded.ann.challenge == nil)
    #expect(try coded.ask(seal: seal) == .sealRejected)
    ask()
    coded.now += 299
    #expect(try coded.ask(seal: seal) == .accepted)
    ask()
    coded.now += 300
    #expect(try coded.ask(seal: seal) == .sealRejected)
    ask()
    #expect(try coded.ask(seal: coded.seal(0, "unlock", [], challenge: [1, 2, 3, 4, 5, 6, 7, 9])) == .sealRejected)
    #expect(coded.ann.challenge == nil && coded.ann.failureCount == 1)
    #expect(try coded.ask(seal: seal) == .sealRejected)
  }

  @Test func `a parameter that looks like a user's challenge asks for none under another command`() throws {
    let coded = try CodedDevice([.device, .seal], seal: challengeSealMethod)
    coded.ann.challenge = IssuedChallenge(bytes: TypedBytes(), expires: coded.now + 300)
    let parameters: [BoundedText<64>] = ["ann", "0123456789abcdef"]
    let seal = try coded.seal(0, "unlock", parameters, challenge: [UInt8](repeating: 0, count: 8))
    #expect(try coded.ask(seal: seal, parameters: parameters) == .accepted)
    #expect(coded.ann.challenge == nil)
  }

  @Test func `a challenge is used up before anything is compared`() throws {
    let coded = try CodedDevice([.device, .seal], seal: challengeSealMethod)
    coded.ann.challenge = IssuedChallenge(bytes: TypedBytes(), expires: coded.now + 300)
    var seen: IssuedChallenge?? = .none
    coded.device.store.onAttempt = { seen = .some(coded.ann.challenge) }
    #expect(try coded.ask(seal: coded.seal(challenge: [UInt8](repeating: 0, count: 8))) == .accepted)
    #expect(seen == .some(nil))
  }

  @Test func `a challenge that came in between is left for the next seal`() throws {
    let coded = try CodedDevice([.device, .seal], seal: challengeSealMethod)
    coded.ann.challenge = IssuedChallenge(bytes: TypedBytes(), expires: coded.now + 300)
    let next = IssuedChallenge(bytes: fixed([9, 9, 9, 9, 9, 9, 9, 9]), expires: coded.now + 300)
    coded.device.store.onAttempt = { coded.ann.challenge = next }
    #expect(try coded.ask(seal: coded.seal(challenge: [UInt8](repeating: 0, count: 8))) == .accepted)
    #expect(coded.ann.challenge == next)
  }
}
