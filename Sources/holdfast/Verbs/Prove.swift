import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport
import HoldfastUser
import Synchronization

struct Prove: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Prove to a device that this app and host are unchanged, and send it a command.",
    discussion: """
      The exit status is 0 if and only if the device accepted the command and proved its identity. With --compatibility, \
      nothing proves its identity: whoever is on the connection can send the answer, and can change the command.
      """,
    examples: [
      "holdfast prove --connect unix:/run/lock.sock --state phone --command unlock",
      """
      holdfast prove --connect rfcomm:00:1A:7D:DA:71:13 --state phone \\
      --command open-safe --parameter 7 --user alice --seal -
      """,
      """
      holdfast prove --connect unix:/run/lock.sock --state phone \\
      --command open-safe --parameter 7 --user alice --seal-request --qr
      """,
      """
      holdfast prove --connect unix:/run/lock.sock --state phone \\
      --command configure --authenticator keys --make-otp
      """,
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @Option(help: "The command for the device, at most 32 bytes.")
  var command: String

  @Option(help: "A parameter of the command, at most 64 bytes; may be repeated, at most 8 times.")
  var parameter: [String] = []

  @Flag(help: "Use a compatibility round, to try a verifier without sessions. The device's policy must allow it.")
  var compatibility = false

  @OptionGroup var codes: CodeOptions
  @OptionGroup var making: MadePasswordOptions
  @OptionGroup var asking: SealRequestOptions

  @Option(
    help: "The authenticator that made the codes: after an accepted command, it is synchronised with the device.",
    completion: .directory)
  var authenticator: String?

  @Option(
    help:
      "The milliseconds that may be spent on delivering bulletins after an accepted command, or off; by default, 300.")
  var courier: CourierOption = CourierOption(budget: CourierBudget())

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  /// Whether the exit status is the complete answer: the device has acted, and the caller must learn it.
  static let isAnsweredByStatus = true
  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    try asking.check(output, codes)
    if asking.sealRequest, let user = codes.user {
      guard !compatibility, authenticator == nil else {
        throw Failure(.usage, "--seal-request excludes --compatibility and --authenticator")
      }
      let inquiry = try DeviceInquiry(
        at: connect, state: enrolled.state, device: enrolled.device, waiting: waiting, pairing: pairing)
      return try asking.get(by: inquiry, user: user, command: command, parameters: parameter, output)
    }
    if making.makeOtp { return try proveWithMadePassword() }
    try making.check()
    let endpoint = try Endpoint(peerArgument: connect)
    let request = try codes.request(command: command, parameters: parameter)
    guard !compatibility || parameter.isEmpty && request.codes.count == 0 else {
      throw Failure(.usage, "a compatibility round has neither parameters nor codes")
    }
    guard authenticator == nil || codes.user != nil else {
      throw Failure(.usage, "--authenticator requires --otp, --seal or --make-otp")
    }
    let timeoutMilliseconds = try waiting.milliseconds()
    let device = try enrolled.expectedDevice()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let prover = Prover(state: enrolled.state, keys: .app, warn: Console.warn)
    var options = ProofOptions(device: device, timeoutMilliseconds: timeoutMilliseconds)
    options.courier = courier.budget
    let outcome = try proving(in: enrolled.folder, at: endpoint) { () throws(ProverError) in
      compatibility
        ? try prover.proveInCompatibilityRound(request.command, at: endpoint, options: options)
        : try prover.prove(request, at: endpoint, options: options)
    }
    if compatibility {
      Console.warning("nothing authenticates the answer to a compatibility round", .unauthenticatedAnswer)
    }
    try report(outcome, why: outcome.damage.map { Failure($0, folder: enrolled.state) })
    if let authenticator, let user = codes.user, let deviceID = outcome.enrolment?.descriptor.deviceID {
      synchronise(authenticator, user, with: deviceID)
    }
  }

  /// Proves with a one-time password that the authenticator makes when the device has answered.
  private func proveWithMadePassword() throws(Failure) {
    guard let authenticator, codes.otp == nil, !compatibility, !asking.sealRequest else {
      throw Failure(
        .usage, "--make-otp requires --authenticator, and excludes --otp, --compatibility and --seal-request")
    }
    let options = AuthenticatorOptions(folder: authenticator)
    let record = try options.passwordRecord(of: codes.user)
    let request = try codes.request(command: command, parameters: parameter, user: record.user)
    let inquiry = try DeviceInquiry(
      at: connect, state: enrolled.state, device: enrolled.device, waiting: waiting, pairing: pairing)
    let protection = try making.unlocking.secret(for: record.protection)
    let outcome = try inquiry.ask(request.command, options) { (prover, proof) throws(UserExchangeError) in
      try options.person.prove(
        request, withPasswordOf: record, under: protection, as: prover, at: inquiry.endpoint, options: proof)
    }
    try report(outcome, why: outcome.damage.map { Failure($0, folder: enrolled.state) })
    if let deviceID = outcome.enrolment?.descriptor.deviceID { synchronise(authenticator, record.user, with: deviceID) }
  }

  /// Synchronises the authenticator by another round. The command was accepted in any case, so that a failure is only a
  /// warning.
  private func synchronise(_ path: String, _ user: String, with deviceID: DeviceID) {
    do throws(Failure) {
      var options = AuthenticatorOptions()
      options.authenticator = path
      var inquiry = try DeviceInquiry(
        at: connect, state: enrolled.state, device: nil, waiting: waiting, pairing: pairing)
      inquiry.options.device = deviceID
      _ = try inquiry.ask(UserCommandName.synchronise, options) { (prover, proof) throws(UserExchangeError) in
        try options.person.synchronise(user, as: prover, at: inquiry.endpoint, options: proof)
      }
    } catch {
      Console.warning(
        "the command was accepted, but the authenticator is not synchronised: \(error.message)", .notSynchronised)
    }
  }

  /// Reports the outcome. `damage` is the damage to the state folder that forces the device to deny.
  private func report(_ outcome: ProofOutcome, why damage: Failure?) throws(Failure) {
    let (status, repetition) = (outcome.verdict.status, outcome.repetition)
    if output.json {
      Console.result(outcome.json)
    } else if status == .accepted {
      let detail = repetition?.text ?? (outcome.result.isEmpty ? nil : printable(outcome.result))
      Console.result("\(command): accepted" + (detail.map { ", \($0)" } ?? ""))
    } else {
      // The device had accepted a command that its actuator then failed to carry out.
      Console.result("\(command): \(outcome.actuatorText == nil ? "denied" : "failed"), \(status.name)")
    }
    guard status == .accepted else {
      if let text = outcome.actuatorText {
        let hint = "it may have been carried out in part: look at the device before you send it again"
        throw Failure(.denied, "the device accepted the command, but its actuator failed: \(text)", hint: hint)
          .afterResult()
      }
      if let repetition { throw Failure(.denied, repetition.text, hint: repetition.hint).afterResult() }
      let refusal = outcome.verdict.notice.refusal
      let explanation = refusal?.explanation(of: command) ?? status.explanation
      if let code = refusal?.failureCode {
        throw Failure(code: code, explanation.text + outcome.retry, hint: explanation.hint).afterResult()
      }
      let text = damage.map { "\(explanation.text): \($0.message)" } ?? explanation.text
      throw Failure(.denied, text + outcome.missing + outcome.retry, hint: damage?.hint ?? explanation.hint)
        .afterResult()
    }
  }
}

/// The value of `--courier`.
struct CourierOption: ExpressibleByArgument {
  let budget: CourierBudget

  init(budget: CourierBudget) { self.budget = budget }

  init?(argument: String) {
    guard let milliseconds = argument == "off" ? 0 : Int(argument),
      argument == "off" || (1...60_000).contains(milliseconds)
    else { return nil }
    budget = CourierBudget(milliseconds: milliseconds)
  }

  var defaultValueDescription: String { "300" }
}

extension ProofOutcome {
  /// The words of the actuator that failed to carry out an accepted command; nil if there are none.
  var actuatorText: String? {
    guard verdict.status == .internal, verdict.isAuthenticated, verdict.notice.refusal == nil, !result.isEmpty else {
      return nil
    }
    return printable(result)
  }

  fileprivate var missing: String {
    guard let factors = verdict.notice.missingFactors, !factors.isEmpty else { return "" }
    return ": \(factors.names.joined(separator: ", ")) missing"
  }

  fileprivate var retry: String {
    guard let seconds = verdict.notice.retryAfterSeconds else { return "" }
    guard seconds < endlessLockoutSeconds else { return "; the device's owner has locked the user out" }
    return "; the device checks the next code in \(seconds) s"
  }

  fileprivate var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("status", .string(verdict.status.name)), ("code", .integer(UInt64(verdict.status.rawValue))),
      ("accepted", .bool(verdict.status == .accepted)), ("authenticated", .bool(verdict.isAuthenticated)),
      ("result_hex", .string(hexadecimal(result.span))), ("result", .string(printable(result))),
    ]
    if let enrolment { members.append(("device_id", .string(hexadecimal(enrolment.descriptor.deviceID)))) }
    if let clock = verdict.notice.clock { members.append(("clock", .integer(clock))) }
    if let floor = verdict.notice.generationFloor { members.append(("generation_floor", .integer(floor))) }
    if let seconds = verdict.notice.retryAfterSeconds { members.append(("retry_after_seconds", .integer(seconds))) }
    if let missing = verdict.notice.missingFactors {
      members.append(("missing_factors", .array(missing.names.map { .string($0) })))
    }
    members.append(("repeated", .bool(verdict.isRepetition)))
    if let highest = verdict.notice.highestRequestNumber, verdict.isRepetition {
      members.append(("highest_request_number", .integer(highest)))
    }
    if let refusal = verdict.notice.refusal { members.append(("refusal", .string("\(refusal)"))) }
    if isRefusalRecorded { members.append(("refusal_recorded", .bool(true))) }
    if deliveredBulletinCount > 0 {
      members.append(("bulletins_delivered", .integer(UInt64(deliveredBulletinCount))))
    }
    if hasTakenAuditPage { members.append(("audit_page_taken", .bool(true))) }
    members.append(("microseconds", timing.json))
    return .object(members)
  }
}

extension ProofTiming {
  var json: JSONValue {
    .object([
      ("measure", .integer(measure / 1000)), ("connect", .integer(connect / 1000)), ("round", .integer(round / 1000)),
      ("device", .integer(device / 1000)), ("total", .integer(total / 1000)),
    ])
  }
}

extension Request {
  /// Creates a request from the command line.
  init(command: String, parameters: [String]) throws(Failure) {
    self.init(command: BoundedText<32>(command) ?? BoundedText())
    guard !self.command.isEmpty else { throw Failure(.usage, "a command must have 1 to 32 bytes") }
    guard parameters.count <= 8 else { throw Failure(.usage, "a command can have at most 8 parameters") }
    for text in parameters {
      guard let parameter = BoundedText<64>(text) else {
        throw Failure(.usage, "a parameter can have at most 64 bytes")
      }
      do throws(EncodingFault) { try append(parameter: parameter) } catch {
        throw Failure(.usage, "a command can have at most 8 parameters")
      }
    }
    try checkUserCommand()
  }

  /// Checks the parameters of a user command, because the device itself only answers `internal` if one is missing.
  private borrowing func checkUserCommand() throws(Failure) {
    if command == UserCommandName.synchronise, parameterCount != 1 {
      throw Failure(.usage, "user-sync needs one --parameter: the user", hint: "use holdfast otp sync instead")
    }
    if command == UserCommandName.state, parameterCount != 1 {
      throw Failure(.usage, "user-state needs one --parameter: the user", hint: "use holdfast otp user-state instead")
    }
    if command == UserCommandName.sealRequest, (parameterCount ?? 0) < 2 {
      throw Failure(
        .usage, "seal-request needs at least two --parameter: the user, and the command",
        hint: "use holdfast prove --seal-request instead")
    }
    guard command == UserCommandName.hostCode else { return }
    let challenge = parameterCount == 2 ? parameter(1).description : ""
    guard challenge.utf8.count == 16, challenge.allSatisfy(\.isHexDigit) else {
      throw Failure(
        .usage, "host-code needs two --parameter: the user, and a challenge of 16 hexadecimal digits",
        hint: "use holdfast otp check-host instead")
    }
  }
}

/// Converts a device's result to text for a terminal: each byte that is not printable ASCII becomes a dot.
func printable(_ bytes: [UInt8]) -> String {
  String(decoding: bytes.map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: ".") }, as: UTF8.self)
}
