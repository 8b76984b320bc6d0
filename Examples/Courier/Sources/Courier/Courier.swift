import Glibc
import HoldfastCore
import HoldfastMeasurement
import HoldfastProver
import HoldfastSDK
import HoldfastTransport

// An app for a courier, who talks to an API while there is a network, and opens a locker where there is none. The file
// account.txt has the account's initial configuration, and the folder courier-state the state.
//
//   Courier start                        prints the id of this host, and the pins of the APIs
//   Courier token API [DATA]             prints a token for a request to an API, bound to DATA
//   Courier text NAME [VALUE]            prints a secure string, or sets this host's
//   Courier claims JSON                  prints a custom JWT
//   Courier sign MESSAGE API             prints a token, and the signature over the token and the message
//   Courier measure API LOCKER FILE      writes the attestation token for the backend of a locker
//   Courier accept LOCKER FILE           stores the measurement token from the backend
//   Courier open COMMAND ENDPOINT        proves to a locker, without a network, and has it carry out a command
//   Courier ask LOCKER SERVICE           asks whether the locker's token is still good, and takes newer terms
//   Courier leave LOCKER SERVICE         gives the locker's token back, and removes it
//   Courier report API                   reports that a locker does not recognise the app any more; prints a token
//   Courier prove NONCE                  prints both proofs for a nonce of 32 hexadecimal digits

@main
struct Courier {
  static func main() async {
    do { try await run() } catch { fail("\(error)") }
  }

  static func run() async throws {
    let words = Array(CommandLine.arguments.dropFirst())
    // Without a group, all apps of this user have one id at the service. The choice comes before anything else.
    if access("group.txt", R_OK) == 0, !HostSecretPlace.choose(group: try contents(of: "group.txt").trimmed) {
      fail("group.txt has no name of a group")
    }
    // Step 1: initialise. The keys are those of mpk.key in this package.
    let options = ClientOptions(log: { say($0) })
    let client = try HoldfastClient.initialize(
      configuration: try contents(of: "account.txt").trimmed, state: "courier-state", keys: .app, options: options)
    // While it is being developed, the app passes without being approved.
    if access("development.key", R_OK) == 0 {
      try client.setDevelopmentKey(try contents(of: "development.key").trimmed)
    }
    switch (words.first, words.count) {
    case ("start", 1): print(client.deviceID ?? "none", client.pinsJSON())
    case ("token", 2...3): await token(client, words)
    case ("text", 2...3):
      show(await client.fetchSecureString(words[1], newDefinition: words.count > 2 ? words[2] : nil))
    case ("claims", 2): show(await client.fetchCustomJWT(payload: words[1]))
    case ("sign", 3): await sign(client, words[1], api: words[2])
    case ("measure", 4): try await measure(client, api: words[1], locker: words[2], into: words[3])
    case ("accept", 3): try accept(client, locker: words[1], words[2])
    case ("open", 3): try await open(client, words[1], at: words[2])
    case ("ask", 3): try ask(client, locker: words[1], at: words[2])
    case ("leave", 3): try leave(client, locker: words[1], at: words[2])
    case ("report", 2): await report(client, api: words[1])
    case ("prove", 2): try prove(client, words[1])
    default:
      let verbs = "start token text claims sign measure accept open ask leave report prove"
      fail("usage: Courier \(verbs.split(separator: " ").joined(separator: " | "))")
    }
  }

  /// Step 2: fetch a token before each request to the API. The client keeps it, not the app.
  static func token(_ client: HoldfastClient, _ words: [String]) async {
    if words.count > 2 { client.setDataHashInToken(words[2]) }
    show(await client.fetchToken(for: words[1]))
  }

  /// Step 3: sign what must not be changed on the way, together with a token.
  static func sign(_ client: HoldfastClient, _ message: String, api: String) async {
    let result = await client.fetchToken(for: api)
    print(result.token)
    print(client.messageSignature(of: result.token + message) ?? "none")
    if result.status != .success { show(result) }
  }

  /// Step 4: while there is a network, measure for a locker. The backend gets the token.
  static func measure(_ client: HoldfastClient, api: String, locker: String, into path: String) async throws {
    let device = try DeviceDescriptor(json: try contents(of: locker))
    let result = await client.fetchToken(for: api, measuringFor: device)
    guard result.status == .success else { return show(result) }
    // The proofs for a verifier of one's own need the configuration.
    try write(result.measurementConfig ?? [], to: "measurement_config.bin")
    try write(Array(result.token.utf8), to: path)
  }

  /// Step 5: store what the backend issued.
  static func accept(_ client: HoldfastClient, locker: String, _ path: String) throws {
    let device = try DeviceDescriptor(json: try contents(of: locker))
    try client.prover.accept(MeasurementToken(try contents(of: path)), for: device, replacing: true)
  }

  /// Step 6: prove to the locker, as often as necessary, without a network.
  static func open(_ client: HoldfastClient, _ command: String, at endpoint: String) async throws {
    guard let command = BoundedText<32>(command) else { fail("the command is too long") }
    let outcome = try await client.prover.prove(Request(command: command), at: Endpoint(parsing: endpoint))
    print(outcome.verdict.status, String(decoding: outcome.result, as: UTF8.self))
  }

  /// While there is a network, ask whether the locker's token is still good. The answer may bring other settings.
  static func ask(_ client: HoldfastClient, locker: String, at service: String) throws {
    let device = try DeviceDescriptor(json: try contents(of: locker)).deviceID
    let standing = try client.prover.refresh(device) { try post($0.body, to: "\(service)/v1/enrolment") }
    let settings = try client.prover.status(device: device).first?.settings?.text
    print(standing.status.name, settings ?? "no settings")
  }

  /// Give the token back. The locker's enrolment is removed also if the service cannot be told.
  static func leave(_ client: HoldfastClient, locker: String, at service: String) throws {
    let device = try DeviceDescriptor(json: try contents(of: locker)).deviceID
    switch try client.prover.leave(device, exchange: { try post($0.body, to: "\(service)/v1/leave") }) {
    case .success(let standing): print(standing.status.name)
    case .failure(let error): fail("the service was not told: \(error)")
    }
  }

  /// Posts JSON by curl, which gets it through a pipe: evidence must not be stored. A shell reads the address.
  static func post(_ body: [UInt8], to url: String) throws -> [UInt8] {
    guard !url.utf8.contains(UInt8(ascii: "'")) else { throw NoAnswer() }
    signal(SIGPIPE, SIG_IGN)
    let command = "curl -sf --max-time 20 -H 'Content-Type: application/json' --data-binary @- '\(url)' >answer.json"
    guard let pipe = popen(command, "w") else { throw NoAnswer() }
    let isWritten = fwrite(body, 1, body.count, pipe) == body.count
    guard pclose(pipe) == 0, isWritten else { throw NoAnswer() }
    return try contents(of: "answer.json")
  }

  struct NoAnswer: Error {}

  /// Step 7: if a locker does not recognise the app any more, have operators see which components changed.
  static func report(_ client: HoldfastClient, api: String) async {
    client.setUserProperty("$error")
    show(await client.fetchToken(for: api))
  }

  /// The same proofs for a verifier that speaks another protocol.
  static func prove(_ client: HoldfastClient, _ digits: String) throws {
    let nonce = stride(from: 0, to: digits.utf8.count, by: 2).compactMap {
      UInt8(digits.dropFirst($0).prefix(2), radix: 16)
    }
    let configuration = try contents(of: "measurement_config.bin")
    print(try client.integrityMeasurementProof(nonce: nonce, measurementConfig: configuration).hex)
    print(try client.deviceMeasurementProof(nonce: nonce, measurementConfig: configuration).hex)
  }

  /// Prints a result, or what the app should tell or log.
  static func show(_ result: FetchResult) {
    switch result.status.recommendation {
    case .proceed where result.status == .success: print(result.secureString ?? result.token)
    case .proceed: fail("make the request without a token: \(result.status.rawValue)")
    case .retry: fail("try again later: \(result.status.rawValue)")
    case .message:
      if let help = result.help { say(help) }
      fail("not accepted: \(result.rejectionReasons.joined(separator: ", ")), code \(result.arc)")
    case .error: fail("error: \(result.loggableToken)")
    }
  }

  static func fail(_ message: String) -> Never {
    say("Courier: \(message)")
    exit(1)
  }

  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }

  static func contents(of path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { fail("\(path) cannot be read") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
  }

  static func write(_ bytes: [UInt8], to path: String) throws {
    let file = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard Glibc.write(file, bytes, bytes.count) == bytes.count, close(file) == 0 else {
      fail("\(path) cannot be written")
    }
  }
}

extension [UInt8] {
  /// The text without white space at its end.
  fileprivate var trimmed: String {
    String(decoding: prefix(through: lastIndex { $0 > 0x20 } ?? startIndex), as: UTF8.self)
  }

  /// The bytes as hexadecimal digits.
  fileprivate var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
