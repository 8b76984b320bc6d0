import ArgumentParser
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// A user's exchange with a device by means of a code from its owner, from connecting to the end.
struct UserConversation: ~Copyable {
  typealias Session = ActivationSession<OpenSSLCryptography, SystemRandom>

  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Runs the exchange. `store` must make the values from the device durable before it returns.
  ///
  /// If this throws after `store` has returned, the device may or may not have received the confirmation.
  func run(
    _ session: consuming Session, store: (borrowing Session) throws(Failure) -> Void
  ) throws(Failure) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var link: DeviceLink
    do throws(TransportError) {
      link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
    var session = session
    while true {
      let message = try receive(over: &link, by: deadline)
      let step: ActivationStep
      do throws(ActivationFault) { step = try session.receive(message.span) } catch {
        throw Failure(error, endpoint: endpoint)
      }
      switch step {
      case .send: break
      case .store:
        try store(session)
        do throws(ActivationFault) { try session.confirm() } catch { throw Failure(error, endpoint: endpoint) }
      case .done: return
      }
      do throws(TransportError) { try link.connection.send(session.outgoing.bytes, by: deadline) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }
  }

  private func receive(over link: inout DeviceLink, by deadline: Deadline) throws(Failure) -> [UInt8] {
    do throws(TransportError) {
      return try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
  }
}

/// The option for a code from the device's owner, which is never an argument itself.
struct OwnersCodeOptions: ParsableArguments {
  @Option(
    help:
      "A file with the code from the device's owner, or - for standard input. By default, the command prompts for it.",
    completion: .file())
  var code: String?

  func read() throws(Failure) -> OneUseCode {
    let text: SecretBytes
    if let code {
      // Other processes can read the arguments, and anyone who has the code can become the user.
      let argument = Array(code.utf8)
      guard OneUseCode(argument.span) == nil else {
        throw Failure(
          secretGivenTo: "--code",
          hint: "give it in a file, or leave out --code and type it; the code was exposed, so ask for another one"
        )
      }
      text = try SecretInput.lineOrAnswer(code, of: "--code", question: "code", limit: 64)
    } else {
      text = try SecretPrompt.ask("code", option: "--code with a file, or - for standard input")
    }
    guard let code = OneUseCode(text.bytes) else {
      throw Failure(
        .malformed, "that is not a code from a device's owner, or it was mistyped",
        hint: "such a code has 20 letters and digits and a check character: XXXX-XXXX-XXXX-XXXX-XXXX-X")
    }
    return code
  }
}

extension Failure {
  /// Creates the failure for an exchange that ended early.
  fileprivate init(_ fault: ActivationFault, endpoint: Endpoint) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
    case .refused(.otpRejected):
      self.init(
        .denied, "the device does not accept the code",
        hint: "a code is valid for ten minutes, one use and one purpose: ask the device's owner for another one")
    case .refused(let status): self.init(.denied, status.explanation.text, hint: status.explanation.hint)
    case .impostor:
      self.init(
        .impostor, "the other end does not know the code, so it is not the device whose owner issued it",
        hint: "check that \(endpoint) is the right device; do not use this one")
    case .random, .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }
}

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
    // The answer to the first attempt is lost, and the answer to a repeated request has no result.
    if let repetition = outcome.repetition { throw Failure(.denied, repetition.text, hint: "try again") }
    guard status == .accepted, let enrolment = outcome.enrolment else {
      let explanation = outcome.verdict.notice.refusal?.explanation ?? status.explanation
      throw Failure(.denied, explanation.text, hint: explanation.hint)
    }
    return (enrolment.descriptor.deviceID, outcome.result)
  }
}

struct PairingOptions: ParsableArguments {
  @Flag(help: "Allow the Bluetooth device to pair with this host during the connection; requires CAP_NET_ADMIN.")
  var pair = false

  /// Creates an acceptor that permits the pairing while it exists; returns nil if pairing was not requested.
  func acceptor(for endpoint: Endpoint) throws(Failure) -> PairingAcceptor? {
    guard pair else { return nil }
    guard case .bluetooth(let device, _) = endpoint.address else {
      throw Failure(.usage, "--pair is only for Bluetooth, and \(endpoint) is not a Bluetooth endpoint")
    }
    do throws(BluetoothError) { return try PairingAcceptor(adapter: endpoint.adapter, peer: device) } catch {
      throw Failure(error, adapter: endpoint.adapter.map { "hci\($0)" })
    }
  }
}
