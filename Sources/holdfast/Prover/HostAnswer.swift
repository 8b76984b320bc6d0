import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL

extension DeviceInquiry {
  /// Makes a challenge, and lets the device answer it: the device's own challenge where the answer is right, or nil.
  func proveHost(
    _ record: Record, in folder: Authenticator, _ options: AuthenticatorOptions
  ) throws(Failure) -> DeviceChallenge? {
    var random = SystemRandom()
    let challenge = try options.using { () throws(AuthenticatorFault) in
      try folder.challengeDevice(record, random: &random)
    }
    guard let answer = HostAnswer(try ask(UserCommandName.hostCode, [record.user, challenge.digits]).result) else {
      return nil
    }
    do throws(AuthenticatorFault) {
      let isRight = try folder.checkHostCode(answer.code, deviceChallenge: answer.challenge, of: record)
      return isRight ? answer.challenge : nil
    } catch {
      // The device's own words: a code that cannot be one.
      guard error == .badQuestion else { throw Failure(error, folder: options.authenticator) }
      return nil
    }
  }
}

/// What a device says to `host-code`: two words, its challenge and the host code. Nothing where it does not know the user.
private struct HostAnswer {
  let challenge: DeviceChallenge
  let code: String

  init?(_ result: [UInt8]) {
    let words = result.split(separator: 0x20, omittingEmptySubsequences: false)
    guard words.count == 2, let challenge = DeviceChallenge(String(decoding: words[0], as: UTF8.self)) else {
      return nil
    }
    self.challenge = challenge
    code = String(decoding: words[1], as: UTF8.self)
  }
}
