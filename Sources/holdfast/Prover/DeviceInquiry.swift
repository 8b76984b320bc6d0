import HoldfastCore
import HoldfastTransport

/// A command by which a device is asked for something: this app proves itself, and the sealed result is the answer.
struct DeviceInquiry {
  private let endpoint: Endpoint
  private let folder: ProverFolder
  private let timeoutMilliseconds: Int
  private let pairing: PairingOptions
  /// The device that must answer; nil for any that is enrolled.
  var expected: DeviceID?

  /// `connect`, `state` and `device` as the command line has them.
  init(
    at connect: String, state: String, device: String?, waiting: TimeoutOptions, pairing: PairingOptions
  ) throws(Failure) {
    endpoint = try Endpoint(peerArgument: connect)
    folder = ProverFolder(path: state)
    expected = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    timeoutMilliseconds = try waiting.milliseconds()
    self.pairing = pairing
  }

  /// The devices that may answer.
  func devices() throws(Failure) -> [DeviceID] {
    if let expected { return [expected] }
    return try reading(folder) { () throws(StateFolderFault) in
      let entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
      return entries.map { $0.device }
    }
  }

  /// The result of the command, which the device must accept, and the device that gave it. Throws what a proof throws; `denied`
  /// for any other verdict.
  func ask(
    _ command: BoundedText<32>, _ parameters: [String]
  ) throws(Failure) -> (device: DeviceID, result: [UInt8]) {
    let choice = try reading(folder) { () throws(StateFolderFault) in
      try EnrolmentChoice(folder, expecting: expected)
    }
    let request = try Request(command: command.description, parameters: parameters)
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let proof = Proof(
      enrolments: choice, request: request, endpoint: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    let outcome = try proof.run()
    let status = outcome.verdict.status
    // The answer to the first attempt is lost, and a repetition has none.
    if let repetition = outcome.repetition { throw Failure(.denied, repetition.text, hint: "try again") }
    guard status == .accepted, let enrolment = outcome.enrolment else {
      let explanation = outcome.verdict.notice.refusal?.explanation ?? status.explanation
      throw Failure(.denied, explanation.text, hint: explanation.hint)
    }
    return (enrolment.descriptor.deviceID, outcome.result)
  }
}
