import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastVault

struct AgentVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "agent",
    abstract: "Hold PINs, passcodes and keys in locked memory for a shift, so that they are needed only once.",
    discussion: """
      Without another option than its limits, the command is the agent and serves until Ctrl-C or SIGTERM. It forgets \
      everything if nobody uses a secret for the idle time, when the shift is over, and at SIGHUP. It writes nothing to the \
      disk, and answers only processes of its user. With another option, the command asks a running agent.
      """,
    examples: [
      "holdfast agent --socket a.sock --idle-minutes 10",
      "holdfast agent --socket a.sock --hold pin",
      "holdfast agent --socket a.sock --give pin | \\\nholdfast otp code --authenticator keys --pin-file -",
      "holdfast agent --socket a.sock --lock",
    ])

  @Option(help: "The agent's socket, which gets mode 0600.", completion: .file())
  var socket: String

  @Option(help: "The minutes without a use after which everything is forgotten, 1 to 1440.")
  var idleMinutes = 15

  @Option(help: "The hours after the first secret at which everything is forgotten, 1 to 24.")
  var shiftHours = 10

  @Flag(help: "Let the agent forget everything.")
  var lock = false

  @Option(help: "Let the agent hold a secret under this name; the command prompts for it.")
  var hold: String?

  @Option(
    help: "For --hold: A file with the secret, its first line, or - for a line of standard input.", completion: .file())
  var secretFile: String?

  @Option(help: "Write the secret of this name to standard output, which must not be a terminal.")
  var give: String?

  @Option(help: "Let the agent forget the secret of this name.")
  var forget: String?

  @Flag(help: "List the names of what the agent holds.")
  var list = false

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let requestCount = [lock, hold != nil, give != nil, forget != nil, list].count { $0 }
    guard requestCount <= 1 else {
      throw Failure(.usage, "--lock, --hold, --give, --forget and --list cannot be combined")
    }
    guard give == nil || isatty(STDOUT_FILENO) == 0 else {
      throw Failure(
        .usage, "a secret is not shown on a terminal", hint: "connect standard output to the program that needs it")
    }
    guard give == nil || !output.json else { throw Failure(.usage, "--give and --json cannot be combined") }
    guard secretFile == nil || hold != nil else { throw Failure(.usage, "--secret-file requires --hold") }
    if requestCount == 0 { try serve() } else { try ask(AgentClient(path: socket)) }
  }

  private func ask(_ client: AgentClient) throws(Failure) {
    let secret: SecretBytes? = try hold == nil ? nil : newSecret()
    do throws(AgentFault) {
      if let hold, let secret {
        try client.hold(secret, as: hold)
        report("holds \(hold)", [("held", .string(hold))])
      } else if let give {
        try write(give, client)
      } else if let forget {
        guard try client.forget(forget) else { throw .unknownName }
        report("forgot \(forget)", [("forgotten", .string(forget))])
      } else if list {
        let names = try client.names()
        if output.json {
          Console.result(.object([("names", .array(names.map { .string($0) }))]))
        } else {
          for name in names { Console.result(name) }
        }
      } else {
        try client.forgetAll()
        report("locked", [("locked", .bool(true))])
      }
    } catch { throw Failure(error, agent: socket) }
  }

  private func report(_ text: String, _ members: [(String, JSONValue)]) {
    if output.json { Console.result(.object(members)) } else { Console.result(text) }
  }

  private func newSecret() throws(Failure) -> SecretBytes {
    guard let secretFile else { return try SecretPrompt.ask("secret", option: "--secret-file") }
    guard !secretFile.isCode else { throw Failure(secretGivenTo: "--secret-file", hint: "give it a file, or -") }
    return try SecretInput.nextLine(secretFile, of: "--secret-file", limit: 1024)
  }

  private func write(_ name: String, _ client: AgentClient) throws(AgentFault) {
    guard let secret = try client.secret(name) else { throw .unknownName }
    Console.result(secret: secret.bytes)
  }

  private func serve() throws(Failure) {
    guard (1...1440).contains(idleMinutes) else { throw Failure(.usage, "--idle-minutes must be from 1 to 1440") }
    guard (1...24).contains(shiftHours) else { throw Failure(.usage, "--shift-hours must be from 1 to 24") }
    let (stop, forget): (WakeUp, WakeUp)
    let agent: Agent
    do throws(SystemError) {
      (stop, forget) = (try WakeUp(), try WakeUp())
      AgentSignals.watch(stop: stop, forget: forget)
      agent = try Agent(at: socket, idleSeconds: idleMinutes * 60, shiftSeconds: shiftHours * 3600)
    } catch { throw Self.failure(error, at: socket) }
    if output.json {
      Console.result(.object([("event", .string("ready")), ("socket", .string(socket))]))
    } else {
      Console.note("the agent listens at \(socket)")
    }
    ServiceManager.tell(.ready)
    agent.serve(until: stop, forgettingAt: forget)
    ServiceManager.tell(.stopping)
  }

  private static func failure(_ error: SystemError, at path: String) -> Failure {
    switch error.number {
    case EADDRINUSE:
      Failure(.unavailable, "\(path) is in use: an agent listens there, or another file has this name")
    case ENOMEM, EPERM:
      Failure(
        .fault, "the memory for secrets cannot be locked",
        hint: "raise the limit: ulimit -l 64, or LimitMEMLOCK= of a unit")
    case ENAMETOOLONG: Failure(.usage, "\(path) is too long for a socket's name")
    default: Failure(making: FileError(error, at: path))
    }
  }
}

/// The signals of an agent, handled on a separate thread: SIGHUP to forget, SIGINT and SIGTERM to end.
private enum AgentSignals {
  /// Blocks the signals in this thread and those that it starts later, and begins to wait for them. Call it first.
  static func watch(stop: WakeUp, forget: WakeUp) {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for number in [SIGHUP, SIGTERM, SIGINT] { unsafe sigaddset(&set, number) }
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    let signals = set
    Thread.detach {
      var (set, number) = (signals, Int32(0))
      while true {
        guard unsafe sigwait(&set, &number) == 0 else { continue }
        if number == SIGHUP { forget.raise() } else { stop.raise() }
      }
    }
  }
}
