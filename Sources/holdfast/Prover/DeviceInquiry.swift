import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastProver
import HoldfastTransport

/// A command that asks a device for a value: this app proves itself, and the sealed result is the answer.
struct DeviceInquiry {
  private let endpoint: Endpoint
  private let folder: ProverFolder
  private let timeoutMilliseconds: Int
  private let pairing: PairingOptions
  /// The device that must answer; nil for any enrolled device.
  var expected: DeviceID?

  /// Parses `connect`, `state` and `device` as given on the command line.
  init(
    at connect: String, state: String, device: String?, waiting: TimeoutOptions, pairing: PairingOptions
  ) throws(Failure) {
    endpoint = try Endpoint(peerArgument: connect)
    folder = ProverFolder(path: state)
    expected = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    timeoutMilliseconds = try waiting.milliseconds()
    self.pairing = pairing
  }

  /// Returns the devices that may answer.
  func devices() throws(Failure) -> [DeviceID] {
    if let expected { return [expected] }
    return try reading(folder) { () throws(StateFolderFault) in
      let entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
      return entries.map { $0.device }
    }
  }

  /// Returns the result of the command, which the device must accept, and the device that sent it.
  ///
  /// - Throws: The errors of a proof; `denied` for any other verdict.
  func ask(
    _ command: BoundedText<32>, _ parameters: [String]
  ) throws(Failure) -> (device: DeviceID, result: [UInt8]) {
    let request = try Request(command: command.description, parameters: parameters)
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let outcome = try proving(in: folder, at: endpoint) { () throws(ProverError) in
      try Prover(state: folder.path, keys: .app, warn: Console.warn).prove(
        request, at: endpoint, options: ProofOptions(device: expected, timeoutMilliseconds: timeoutMilliseconds))
    }
    let status = outcome.verdict.status
    // The answer to the first attempt is lost, and the answer to a repeated request has no result.
    if let repetition = outcome.repetition { throw Failure(.denied, repetition.text, hint: "try again") }
    guard status == .accepted, let enrolment = outcome.enrolment else {
      let explanation = outcome.verdict.notice.refusal?.explanation ?? status.explanation
      throw Failure(.denied, explanation.text, hint: explanation.hint)
    }
    return (enrolment.descriptor.deviceID, outcome.result)
  }
}

extension DeviceInquiry {
  /// Challenges the device and checks its answer. Returns the device's own challenge if the answer is right, otherwise
  /// nil.
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
      // A device can send any text, even one that is not a code; it counts as a wrong answer.
      guard error == .badQuestion else { throw Failure(error, folder: options.authenticator) }
      return nil
    }
  }
}

/// A device's answer to `host-code`: its challenge and the host code, as two words. It is empty if the device does not
/// know the user.
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
