import ArgumentParser
import HoldfastAttack
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport

struct AttackVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "attack", abstract: "Attack a device, or the provers that connect, and say whether they are sound.",
    discussion: """
      The adversary has an enrolled prover. Each attack changes one thing of an honest round, on a new connection, and an \
      honest round follows it. For each, the result says what was done, what a sound device answers, and what this one \
      answered.

      The attacks send --command, which should do no harm, and use up no uses or codes, move no clock floor and lock no \
      user out, unless --destructive is given. An unsound device may carry out --command without proofs, and --guarded \
      without the integrity proof.

      With --listen, the adversary poses as a device, the one of --state or --device, and deceives the provers that \
      connect, each in another way, until SIGTERM or --connections.

      The exit status is 2 if the device, or a prover, is unsound. It is 0 if every attack that was tried failed.
      """,
    examples: [
      "holdfast attack unix:/run/lock.sock --state phone",
      """
      holdfast attack tty:/dev/ttyACM0 --state phone --service service \\
      --junit board.xml
      """,
      """
      holdfast attack unix:/run/lock.sock --state phone --destructive \\
      --user alice --otp - --otp-command configure
      """,
      "holdfast attack --listen unix:/tmp/impostor.sock --state phone",
    ])

  @Argument(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var endpoint: String?

  @Option(help: "Pose as a device at this endpoint, in place of attacking one.")
  var listen: String?

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String?

  @Option(
    help: "The device: its id (32 hexadecimal digits) or its descriptor. By default, any device of the state folder.",
    completion: .file())
  var device: String?

  @Option(
    help: "The folder of the service that issued the token, for attacks with tokens that the device trusts.",
    completion: .directory)
  var service: String?

  @Option(help: "A harmless command of the device, for the honest rounds.")
  var command: String = "status"

  @Option(help: "A command that needs the integrity proof. It is never sent with a right one.")
  var guarded: String = "unlock"

  @Option(help: "A user of the device, for attacks on one-time passwords.")
  var user: String?

  @Option(
    help: "A file with a one-time password of the user that was not used yet; - is standard input.", completion: .file()
  )
  var otp: String?

  @Option(
    help: "A file with the user's next password or a later one, for the attack password-before-the-last.",
    completion: .file())
  var laterOtp: String?

  @Option(help: "A command that needs a one-time password.")
  var otpCommand: String = "configure"

  @Flag(help: "Also use up uses and codes, try to move the clock floor, and lock the user out.")
  var destructive = false

  @Flag(help: "The device's policy allows compatibility rounds for --command on purpose.")
  var compatibility = false

  @Option(help: "Run only this attack; may be repeated.")
  var only: [String] = []

  @Option(help: "Leave this attack out; may be repeated.")
  var skip: [String] = []

  @Option(help: "Write the results to this file, too, in the format of JUnit.", completion: .file(extensions: ["xml"]))
  var junit: String?

  @Option(help: "With --listen: end after so many connections.")
  var connections: Int?

  @Flag(help: "With --listen: allow any Bluetooth device to pair with this host; requires CAP_NET_ADMIN.")
  var pair = false

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (endpoint == nil) != (listen == nil) else {
      throw Failure(.usage, "attack needs the endpoint of a device, or --listen")
    }
    if let endpoint {
      try attack(try Endpoint(peerArgument: endpoint))
    } else if let listen {
      try deceive(at: try Endpoint(argument: listen))
    }
  }
}

/// Attacking a device.
extension AttackVerb {
  private func attack(_ endpoint: Endpoint) throws(Failure) {
    guard connections == nil, !pair else { throw Failure(.usage, "--connections and --pair require --listen") }
    guard let state else { throw Failure(.usage, "--state is missing", hint: "it names the folder that enroll filled") }
    let attacks = try selected(Attack.all.map { ($0.id, $0) })
    var options = Adversary.Options(
      command: try name(command, "--command"), guarded: try name(guarded, "--guarded"),
      passwordCommand: try name(otpCommand, "--otp-command"), timeoutMilliseconds: try waiting.milliseconds())
    (options.isDestructive, options.allowsCompatibility) = (destructive, compatibility)
    guard (user == nil) == (otp == nil) else { throw Failure(.usage, "--user and --otp require each other") }
    guard laterOtp == nil || otp != nil else { throw Failure(.usage, "--later-otp requires --otp") }
    let code = try self.code(in: otp, "--otp", question: "one-time password")
    let later = try self.code(in: laterOtp, "--later-otp", question: "later one-time password")
    let expected = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let folder = ProverFolder(path: state)
    let choice = try reading(folder) { () throws(StateFolderFault) in
      try EnrolmentChoice(folder, expecting: expected)
    }
    let (enrolment, honest) = try meet(endpoint, state, expected, &options)
    var adversary = try adversary(endpoint, enrolment, choice, folder, options)
    adversary.setHonest(honest)
    if let code { adversary.take(code: code, later: later) }
    if let service {
      adversary.take(
        issuer: try serving(service) { () throws(ServiceFolderFault) in
          try ServiceFolder(path: service).trustedIssuer()
        })
    }
    try report(run(&adversary, attacks), at: endpoint, enrolment.descriptor.deviceID)
  }

  /// Runs an honest round, whose failure ends the command as it ends `prove`. Where it would use up the token, the command is one
  /// that every device refuses.
  private func meet(
    _ endpoint: Endpoint, _ state: String, _ expected: DeviceID?, _ options: inout Adversary.Options
  ) throws(Failure) -> (Enrolment, Status) {
    let prover = Prover(state: state, keys: .app, warn: Console.warn)
    let proofOptions = ProofOptions(device: expected, timeoutMilliseconds: options.timeoutMilliseconds)
    let limited = try reading(state) { (prover) throws(ProverError) in
      try prover.status(device: expected).contains { !Adversary.mayBeAccepted($0.report, isDestructive: destructive) }
    }
    if limited {
      Console.warning("honest rounds would use up the token, so they send a command that the device refuses")
      options.command = BoundedText("attack-no-such-command")
    }
    let request = Request(command: options.command)
    let outcome = try proving(in: ProverFolder(path: state), at: endpoint) { () throws(ProverError) in
      try prover.prove(request, at: endpoint, options: proofOptions)
    }
    let (verdict, explanation) = (outcome.verdict, outcome.verdict.status.explanation)
    guard let enrolment = outcome.enrolment, verdict.isAuthenticated,
      [.accepted, .commandRefused, .factorMissing].contains(verdict.status)
    else {
      throw Failure(
        .denied, "the honest round before the attacks was denied: \(explanation.text)", hint: explanation.hint)
    }
    if verdict.status != .accepted, !limited {
      Console.warning("the device does not accept \(command), so attacks with accepted requests are not tried")
    }
    return (enrolment, verdict.status)
  }

  private func adversary(
    _ endpoint: Endpoint, _ enrolment: Enrolment, _ choice: EnrolmentChoice, _ folder: ProverFolder,
    _ options: Adversary.Options
  ) throws(Failure) -> Adversary {
    do throws(ProverError) {
      let measurements: ProvableMeasurements
      do throws(MeasurementError) {
        var measurer = Measurer(keys: .app)
        measurements = try measurer.provableMeasurements(for: try enrolment.decodedConfiguration())
      } catch { throw .measurement(error) }
      let numbers: RequestNumbers
      do throws(StateFolderFault) { numbers = try choice.requestNumbers(of: enrolment, warn: Console.warn) } catch {
        throw .state(error)
      }
      let first: UInt64
      do throws(RequestNumberFault) { first = try numbers.next(count: Self.numberCount) } catch {
        throw .requestNumber(error)
      }
      return Adversary(of: endpoint, as: enrolment, measurements, firstNumber: first, options: options)
    } catch { throw Failure(error, folder: folder.path, endpoint: endpoint) }
  }

  /// The request numbers that the attacks may use.
  private static let numberCount: UInt64 = 10_000

  private func run(_ adversary: inout Adversary, _ attacks: [Attack]) -> [AttackResult] {
    var results: [AttackResult] = []
    var progress = BenchProgress("attacks", of: attacks.count)
    adversary.run(attacks) { result, index in
      results.append(result)
      if !output.json { for line in result.lines { Console.result(line) } }
      progress.step(index + 1)
    }
    return results
  }

  private func report(
    _ results: [AttackResult], at endpoint: Endpoint, _ device: DeviceID
  ) throws(Failure) {
    let report = AttackReport(endpoint: endpoint, device: device, isDestructive: destructive, results: results)
    if output.json { Console.result(report.json) } else { Console.result(report.summary) }
    if let junit { try report.writeJUnit(to: junit) }
    guard report.unsound.isEmpty else {
      throw Failure(
        .malformed, "the device is unsound: \(report.unsound.map(\.attack.id).joined(separator: ", "))"
      ).afterResult()
    }
  }

  /// Returns the user's one-time password in the file that an option names; nil without a file.
  private func code(in file: String?, _ option: String, question: String) throws(Failure) -> UserCode? {
    guard let user, let file else { return nil }
    return try CodeOptions.code(of: user, in: file, option, question: question)
  }

  private func name(_ text: String, _ option: String) throws(Failure) -> BoundedText<32> {
    guard let name = BoundedText<32>(text), !name.isEmpty else {
      throw Failure(.usage, "\(option) must have 1 to 32 bytes")
    }
    return name
  }

  /// Returns the attacks that `--only` and `--skip` leave.
  func selected<Item>(_ items: [(id: String, item: Item)]) throws(Failure) -> [Item] {
    for id in only + skip where !items.contains(where: { $0.id == id }) {
      throw Failure(
        .usage, "there is no attack '\(id)'", hint: "the attacks: \(items.map(\.id).joined(separator: ", "))")
    }
    let chosen = items.filter { (only.isEmpty || only.contains($0.id)) && !skip.contains($0.id) }
    guard !chosen.isEmpty else { throw Failure(.usage, "--skip leaves no attack") }
    return chosen.map(\.item)
  }
}
