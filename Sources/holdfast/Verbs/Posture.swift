import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver

struct PostureVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "posture",
    abstract: "Show weaknesses of this host and process that an attacker could use; install rules about them.",
    discussion: """
      It needs no network, no enrolment and no root. A source that cannot be read is unknown, never clear. With --state, the \
      installed rules decide: the exit status is 1 if they refuse, and then enroll and prove refuse too. The first rules need \
      --issuer; later ones must be from the same issuer and have a higher number.

      --sign prints a statement for another party, signed with a key that follows from this host's device.secret; --key prints \
      the public half, and --check checks a statement of another host. A statement proves who made it and when, not that it is \
      true: root can make a host lie.
      """,
    examples: [
      "holdfast posture",
      "holdfast posture --state phone --json",
      "holdfast posture --state phone --rules rules.jws --issuer service.json",
      "holdfast posture --state phone --rules-from https://a.example",
      "holdfast posture --sign --nonce 000102030405060708090a0b0c0d0e0f",
      "holdfast posture --check statement.jws --of host.jwk --max-age 60",
    ])

  @Option(help: "A prover's state folder, whose rules decide.", completion: .directory)
  var state: String?

  @Option(help: "Install these signed rules in the state folder; - is standard input.", completion: .file())
  var rules: String?

  @Option(
    defaultAsFlag: ServiceCallOptions.kept,
    help:
      "Install the rules of an online service, one to eight URLs with commas between them. Without a value, that of the last enrolment."
  )
  var rulesFrom: String?

  @OptionGroup var calls: ServiceCallOptions

  @Option(
    help: "The issuer's public key, or the output of service show --json: for the first rules.", completion: .file())
  var issuer: String?

  @Flag(help: "Print a signed statement.")
  var sign = false

  @Option(help: "The nonce of the party that asked for the statement, 32 hexadecimal digits.")
  var nonce: String?

  @Flag(help: "Print the public key of this host's statements, a JWK.")
  var key = false

  @Option(help: "Check a statement of another host; - is standard input.", completion: .file())
  var check: String?

  @Option(help: "The public key of that host, as --key printed it.", completion: .file())
  var of: String?

  @Option(help: "The largest age of a statement, in seconds; by default 300, or any age if --nonce is given.")
  var maxAge: UInt64?

  @Option(
    help: "The key file of the app's release: check also that a program with its keys vouches for the host's key.",
    completion: .file())
  var proofKeys: String?

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    try validateChoice()
    if let check {
      try checkStatement(check)
    } else if key {
      try printKey()
    } else {
      if let rules { try install(try Input.read(rules, limit: 65_536)) }
      if let rulesFrom, let state { try fetchRules(rulesFrom, state) }
      let (posture, verdict) = try look()
      if let state, verdict?.verdict.action == .wipe {
        Console.warning(
          "the next enroll, measure or prove removes all enrolments of \(state), as the rules demand", .postureWipes)
      }
      if sign { try printStatement(posture, verdict) } else { report(posture, verdict) }
      try refuse(verdict)
    }
  }

  private func validateChoice() throws(Failure) {
    guard [sign, key, check != nil].count(where: { $0 }) <= 1 else {
      throw Failure(.usage, "--sign, --key and --check exclude each other")
    }
    let hasRules = rules != nil || rulesFrom != nil
    guard (!hasRules || state != nil) && (issuer == nil || hasRules) else {
      throw Failure(.usage, !hasRules ? "--issuer needs --rules" : "--rules needs the state folder, --state")
    }
    guard rules == nil || rulesFrom == nil else { throw Failure(.usage, "--rules and --rules-from exclude each other") }
    if rulesFrom == nil { try calls.checkUnused(without: "--rules-from") }
    guard nonce == nil || sign || check != nil else { throw Failure(.usage, "--nonce needs --sign or --check") }
    guard (check == nil) == (of == nil) else { throw Failure(.usage, "--check and --of need each other") }
    guard check != nil || (maxAge == nil && proofKeys == nil) else {
      throw Failure(.usage, "--max-age and --proof-keys need --check")
    }
    guard !key && check == nil || state == nil else { throw Failure(.usage, "--state has no use here") }
  }

  private func fetchRules(_ services: String, _ state: String) throws(Failure) {
    let answer = try calls.ask(.postureRules, at: services, of: "--rules-from", state: state)
    try install(Array((answer.text ?? "").utf8))
  }

  private func install(_ text: [UInt8]) throws(Failure) {
    guard let state else { return }
    var point: P256Point?
    if let issuer {
      guard case .signing(let key) = try IssuerKey(file: issuer) else {
        throw Failure(.malformed, "\(issuer) is not the public key of an issuer")
      }
      point = key
    }
    let installed = try writing(state) { (prover) throws(ProverError) in
      try prover.installPostureRules(text, issuer: point)
    }
    if !output.json { Console.note("rules \(installed.number) are installed in \(state)") }
  }

  /// Looks at the posture, and judges it by the rules of the state folder.
  private func look() throws(Failure) -> (Posture, Judgement?) {
    guard let state else { return (Posture.ofThisHost(), nil) }
    return try reading(state) { (prover) throws(ProverError) in
      let (posture, rules, verdict) = try prover.posture()
      guard let rules, let verdict else { return (posture, nil) }
      return (posture, Judgement(rules: rules, verdict: verdict))
    }
  }

  /// Installed rules and what follows from them.
  struct Judgement {
    let rules: PostureRules
    let verdict: PostureVerdict
  }

  private func report(_ posture: Posture, _ judgement: Judgement?) {
    let actions = judgement?.verdict.decisions ?? []
    func action(_ name: String) -> PostureAction? { actions.first { $0.name == name }?.action }
    if output.json {
      var findings = posture.observations.map { observation in
        JSONValue.object([
          ("name", .string(observation.finding.rawValue)), ("state", .string(observation.state.rawValue)),
          ("details", .string(observation.details)), ("stable", .bool(observation.finding.isStable)),
          ("action", action(observation.finding.rawValue).map { .string($0.rawValue) } ?? .null),
        ])
      }
      // Findings that only the rules know.
      for decision in actions.dropFirst(posture.observations.count) {
        findings.append(
          .object([
            ("name", .string(decision.name)), ("state", .string(decision.state.rawValue)), ("details", .string("")),
            ("stable", .bool(false)), ("action", .string(decision.action.rawValue)),
          ]))
      }
      Console.result(
        .object([
          ("findings", .array(findings)), ("rules", judgement?.rules.json ?? .null),
          ("verdict", judgement.map { .string($0.verdict.action.rawValue) } ?? .null),
        ]))
      return
    }
    for observation in posture.observations {
      let consequence = action(observation.finding.rawValue).flatMap { $0 == .ignore ? nil : "[\($0.rawValue)] " } ?? ""
      Console.result(
        observation.finding.rawValue.padded(to: 26) + observation.state.rawValue.padded(to: 9) + consequence
          + observation.details)
    }
    for decision in actions.dropFirst(posture.observations.count) {
      Console.result(
        "\(decision.name.padded(to: 26))\("unknown".padded(to: 9))[\(decision.action.rawValue)] not known to this version"
      )
    }
    if let judgement { Console.result("rules \(judgement.rules.number): \(judgement.verdict.action.rawValue)") }
  }

  private func refuse(_ judgement: Judgement?) throws(Failure) {
    guard let judgement, judgement.verdict.action >= .refuse else { return }
    let findings = judgement.verdict.decisions.filter { $0.action >= .refuse }.map(\.name)
    throw Failure(PostureFault.refused(rules: judgement.rules.number, findings: findings)).afterResult()
  }

  private func printStatement(_ posture: Posture, _ judgement: Judgement?) throws(Failure) {
    let nonce = try requestedNonce()
    guard let now = SystemClock().unixSeconds() else { throw Failure(.fault, "there is no clock") }
    let text = try reading(state ?? ".") { (prover) throws(ProverError) in
      try prover.sign(
        posture, judged: judgement.map { ($0.rules.number, $0.verdict.action) }, nonce: nonce, now: now)
    }
    let statement = String(decoding: text, as: UTF8.self)
    if output.json { Console.result(.object([("statement", .string(statement))])) } else { Console.result(statement) }
  }

  private func requestedNonce() throws(Failure) -> Nonce? {
    guard let nonce else { return nil }
    guard let bytes: Nonce = fixedBytes(hexadecimal: nonce.lowercased()) else {
      throw Failure(.usage, "--nonce must be 32 hexadecimal digits")
    }
    return bytes
  }

  private func printKey() throws(Failure) {
    do throws(MeasurementError) {
      let point = try PostureKey.ofHost().publicPoint
      Console.result(PublicKeyJWK(point: point).json)
    } catch { throw Failure(error) }
  }

  private func checkStatement(_ file: String) throws(Failure) {
    let expected = try requestedNonce()
    let text = try Input.read(file, limit: 65_536)
    guard let of else { return }
    let point: P256Point
    let key = try Input.read(of, limit: PublicKeyJWK.maximumByteCount)
    do throws(KeyFault) { point = try PublicKeyJWK(json: key).point } catch {
      throw Failure(error, path: of)
    }
    let statement: PostureStatement
    if let proofKeys {
      let roots = try ReleaseRoots(file: proofKeys)
      statement = try opened(text, file, point) { id in
        for index in 0..<roots.count {
          guard let keys = try? ReleaseKeys(of: roots.root(at: index)), keys.id == id else { continue }
          return keys.evidence.copy()
        }
        return nil
      }
    } else {
      statement = try opened(text, file, point) { _ in nil }
    }
    guard proofKeys == nil || statement.isOfRelease == true else {
      throw Failure(.malformed, "no program with the keys in \(proofKeys ?? "the file") vouches for the key of \(file)")
    }
    if let expected, statement.nonce != expected {
      throw Failure(.malformed, "\(file) was not made for this nonce", hint: "ask the host for another statement")
    }
    guard let now = SystemClock().unixSeconds() else { throw Failure(.fault, "there is no clock") }
    let limit = maxAge ?? (expected == nil ? 300 : .max)
    guard statement.issued <= now + 60, now - min(now, statement.issued) <= limit else {
      throw Failure(.malformed, "\(file) is too old, or from the future", hint: "are the clocks of both hosts right?")
    }
    Console.result(statement.json)
  }
}

private func opened(
  _ text: [UInt8], _ file: String, _ point: P256Point, findKey: (KeyID) -> EvidenceKey?
) throws(Failure) -> PostureStatement {
  do throws(SignedJSON.Fault) { return try PostureStatement(checking: text, by: point, findKey: findKey) } catch {
    throw Failure(error, statement: file)
  }
}

extension PostureRules {
  /// The rules in the output of `--json`.
  fileprivate var json: JSONValue {
    .object([
      ("number", .integer(number)), ("issued", .integer(issued)), ("until", until.map { .integer($0) } ?? .null),
    ])
  }
}

extension PostureStatement {
  /// A statement that was checked.
  fileprivate var json: JSONValue {
    .object([
      ("issued", .integer(issued)), ("nonce", nonce.map { .string(hexadecimal($0)) } ?? .null),
      ("findings", .object(findings.map { ($0.name, .string($0.state.rawValue)) })),
      ("rules", rulesNumber.map { .integer($0) } ?? .null),
      ("verdict", action.map { .string($0.rawValue) } ?? .null), ("release", .string(hexadecimal(release))),
      ("vouched", isOfRelease.map { .bool($0) } ?? .null),
    ])
  }
}
