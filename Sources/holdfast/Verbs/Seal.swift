import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct Seal: Verb {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Compute the seal of a command: a code that is valid only for this command and its parameters.",
    usage: """
      holdfast seal --authenticator DIR --command COMMAND [--parameter TEXT ...]
      holdfast seal --authenticator DIR --request FILE
      """,
    discussion: """
      The command and parameters are shown before the PIN is requested. A wrong PIN gives a wrong seal. With --request, the \
      command is that of a device's request, which prove --seal-request gets: the authenticator first checks that the \
      device made it, and then asks you. A refusal is given to the device like a seal; the device records it and does not act.
      """,
    examples: [
      "holdfast seal --authenticator keys --command open-safe --parameter 7",
      "holdfast seal --authenticator keys --request request.txt",
      "holdfast seal --authenticator keys --request - --reject",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The command for the device, at most 32 bytes.")
  var command: String?

  @Option(
    help:
      "A parameter of the command, at most 16 characters unless the record allows more; may be repeated, at most 8 times."
  )
  var parameter: [String] = []

  @Option(help: "The device's challenge, 16 hexadecimal digits, for records whose seals require one.")
  var deviceChallenge: String?

  @Option(
    help: "A file with a device's request, as text, in place of the command; - is standard input.", completion: .file())
  var request: String?

  @Flag(help: "Do not ask whether to seal; a PIN is still needed.")
  var yes = false

  @Flag(help: "Make the refusal in place of the seal, without that question.")
  var reject = false

  mutating func perform() throws(Failure) {
    guard !(yes && reject) else { throw Failure(.usage, "--yes and --reject cannot be combined") }
    if let request {
      guard command == nil, parameter.isEmpty, deviceChallenge == nil, record.user == nil, record.index == nil else {
        throw Failure(.usage, "a request names user, command, parameters and challenge; give no other")
      }
      try answer(try SealRequestInput.read(request))
    } else {
      guard let command else { throw Failure(.usage, "either --command or --request is required") }
      guard !yes else { throw Failure(.usage, "--yes requires --request") }
      try seal(command)
    }
  }

  /// Seals a command that the user typed.
  private func seal(_ command: String) throws(Failure) {
    let challenge = try deviceChallenge.map { (text) throws(Failure) in
      guard let challenge = DeviceChallenge(text) else {
        throw Failure(.usage, "--device-challenge must be 16 hexadecimal digits")
      }
      return challenge
    }
    let folder = try authenticator.open()
    let record = try record.find(.seal, in: folder, authenticator)
    guard record.needsChallenge == (challenge != nil) else {
      throw Failure(
        .usage,
        record.needsChallenge ? "the record's seals require --device-challenge" : "the record's seals use no challenge")
    }
    let request: SealRequest
    do throws(SealFault) {
      request = try SealRequest(command: command, parameters: parameter, fieldByteLimit: record.sealFieldByteLimit)
    } catch { throw Failure(error, fieldByteLimit: record.sealFieldByteLimit) }
    show(request, reject ? "refusing" : "sealing")
    let advice = advise(record)
    let secret = try unlocking.secret(for: record.protection)
    let seal = try authenticator.using { () throws(AuthenticatorFault) in
      reject
        ? try folder.refusal(of: request, for: record, challenge: challenge, with: secret, clock: SystemClock())
        : try folder.seal(request, for: record, challenge: challenge, with: secret, clock: SystemClock())
    }
    report(seal, record, isRefusal: reject, advice)
  }

  /// Shows a device's request, asks, and makes the seal or the refusal. A request that the device did not make is not shown.
  private func answer(_ text: [UInt8]) throws(Failure) {
    let folder = try authenticator.open()
    let request = try checking { () throws(SealRequestFault) in try folder.check(text, clock: SystemClock()) }
    Console.note("device \(hexadecimal(request.device)) asks \(request.user)")
    if let text = request.text { Console.note("    \(text)") }
    show(request.sealed, "to be sealed,")
    let advice = advise(request.record)
    let isRefusal = if reject || yes { reject } else { try isRejected() }
    let secret = try unlocking.secret(for: request.record.protection)
    let seal = try checking { () throws(SealRequestFault) in
      isRefusal
        ? try folder.reject(request, with: secret, clock: SystemClock())
        : try folder.approve(request, with: secret, clock: SystemClock())
    }
    report(seal, request.record, isRefusal: isRefusal, advice, request)
  }

  private func checking<Result>(_ body: () throws(SealRequestFault) -> Result) throws(Failure) -> Result {
    do throws(SealRequestFault) { return try body() } catch {
      throw Failure(error, folder: authenticator.authenticator)
    }
  }

  /// Asks the user; returns false for an approval, true for a rejection.
  private func isRejected() throws(Failure) -> Bool {
    switch try Confirmation.answer(to: "seal this? yes, no, or reject", otherwise: "use --yes or --reject") {
    case "yes": return false
    case "reject": return true
    default: throw Failure(.denied, "no seal was made, and the device does not learn of it")
    }
  }

  /// Advises to synchronise, while the user can still do so before the seal.
  private func advise(_ record: Record) -> SynchronisationAdvice {
    let advice = record.synchronisationAdvice(now: SystemClock().unixSeconds() ?? 0)
    if advice != .notNeeded {
      Console.note(
        "synchronisation is \(advice.word) before a seal: holdfast otp sync --connect ENDPOINT --state STATE --authenticator DIR"
      )
    }
    return advice
  }

  private func report(
    _ seal: Code, _ record: Record, isRefusal: Bool, _ advice: SynchronisationAdvice,
    _ request: CheckedSealRequest? = nil
  ) {
    if output.json {
      var members: [(String, JSONValue)] = [
        ("seal", .string(seal.text)), ("seconds_remaining", seal.secondsRemaining.map { .integer($0) } ?? .null),
        ("user", .string(record.user)), ("index", .integer(UInt64(record.index))), ("rejected", .bool(isRefusal)),
        ("synchronisation", .string(advice.word)),
      ]
      if let request {
        members += [
          ("device_id", .string(hexadecimal(request.device))), ("command", .string(request.sealed.command)),
          ("parameters", .array(request.sealed.parameters.map { .string($0) })),
          ("text", request.text.map { .string($0) } ?? .null), ("challenge", .string(request.challenge.digits)),
        ]
      }
      Console.result(.object(members))
    } else {
      if isRefusal {
        Console.note("this refuses the command; give it to prove as the seal, so that the device records it")
      }
      Console.result(seal.text)
      Countdown.run(seal.secondsRemaining)
    }
  }

  private func show(_ request: SealRequest, _ verb: String) {
    Console.note("\(verb) command: \(request.command)")
    for (index, parameter) in request.parameters.enumerated() {
      Console.note("    parameter \(index + 1): \(parameter)")
    }
    if request.parameters.isEmpty { Console.note("    no parameters") }
  }
}

/// The input of a request for a seal: a file or standard input with its text, as a scanner of QR codes prints it.
private enum SealRequestInput {
  /// The length of the longest file, in bytes. Only 700 of them can be a request.
  private static let limit = 4096

  static func read(_ path: String) throws(Failure) -> [UInt8] {
    var text = try Input.read(path, limit: limit) { error in
      error.kind == .tooLarge ? Failure(SealRequestFault.malformed, folder: "") : nil
    }
    if text.last == 0x0a { text.removeLast() }
    if text.last == 0x0d { text.removeLast() }
    return text
  }
}
