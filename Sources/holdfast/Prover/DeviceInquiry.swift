import HoldfastCore
import HoldfastTransport

/// A command by which a device is asked for something: this app proves itself, and the sealed result is the answer.
struct DeviceInquiry {
  private let endpoint: Endpoint
  private let folder: ProverFolder
  private let timeoutMilliseconds: Int
  private let pairing: PairingOptions

  /// `connect` and `state` as the command line has them.
  init(at connect: String, state: String, waiting: TimeoutOptions, pairing: PairingOptions) throws(Failure) {
    endpoint = try Endpoint(peerArgument: connect)
    folder = ProverFolder(path: state)
    timeoutMilliseconds = try waiting.milliseconds()
    self.pairing = pairing
  }

  /// Which device is asked, and none else answers.
  func deviceID() throws(Failure) -> DeviceID { try folder.load().descriptor.deviceID }

  /// The result of the command, which the device must accept. Throws what a proof throws; `denied` for any other verdict.
  func ask(_ command: BoundedText<32>, _ parameters: [String]) throws(Failure) -> [UInt8] {
    let enrolment = try folder.load()
    let request = try Request(command: command.description, parameters: parameters)
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let proof = Proof(
      enrolment: enrolment, request: request, endpoint: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    let outcome = try proof.run(isRemembered: folder.isRemembered(enrolment.token))
    let status = outcome.verdict.status
    guard status == .accepted else {
      throw Failure(.denied, status.explanation.text, hint: status.explanation.hint)
    }
    return outcome.result
  }
}
