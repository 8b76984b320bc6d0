import HoldfastCore
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport

extension Demonstration {
  /// Messages caught, moved and changed on their way.
  mutating func attackTheWire(_ attacker: Attacker) throws(Failure) {
    let line = try Attacker.Line(attacker.endpoint)
    let genuine = try attacker.answer(to: try line.receive())
    _ = try line.exchange(genuine)
    _ = try line.receive()
    expect("an answer is replayed", .deviceMismatch, try line.exchange(genuine))

    let (here, there) = (try Attacker.Line(attacker.endpoint), try Attacker.Line(attacker.endpoint))
    _ = try there.receive()
    expect(
      "an answer is moved to another session", .deviceMismatch,
      try there.exchange(try attacker.answer(to: try here.receive())))

    let changed = try Attacker.Line(attacker.endpoint)
    var answer = try attacker.answer(to: try changed.receive())
    answer[answer.count - 17] ^= 1
    expect("the command is changed on its way", .malformed, try changed.exchange(answer))
  }

  /// Tokens that were not issued for this device now.
  mutating func attackTheToken(_ attacker: Attacker) throws(Failure) {
    try playground.makeDevice("other")
    try playground.enroll("other-prover", device: "other")
    let other = try ProverFolder(path: playground.path("other-prover")).load()
    expect("the token of another device", .tokenInvalid, try attacker.status(ofToken: other.token))

    let now = SystemClock().unixSeconds() ?? 0
    for (text, format) in [
      ("an unsigned token", MeasurementTokenFormat.unsignedCOSE), ("a token signed by a stranger", .cose),
    ] {
      var stranger = try makeKey()
      let forged = try attacker.forgeToken(format: format, issuer: &stranger, issuedAt: now, expires: now + 3600)
      expect(text, .tokenInvalid, try attacker.status(ofToken: forged))
    }
    try enrolTwoHoursAgo(for: attacker.enrolment)
    story.expect("a token that has expired", Status.tokenExpired.name, try runProver(state: "expired").statusName)
  }

  /// A prover that is not what it was.
  mutating func attackTheProver(at endpoint: Endpoint) throws(Failure) {
    try copyState(to: "flipped")
    try flipByte(of: playground.path("flipped/\(ProverFolder.configurationName)"), at: 20)
    story.expect(
      "a flipped byte in the measurement configuration", Status.deviceMismatch.name,
      try runProver(state: "flipped").statusName)
    story.expect(
      "a prover with an LD_PRELOADed library", Status.integrityMismatch.name,
      try runProver(environment: ["LD_PRELOAD": "libc_malloc_debug.so.0"]).statusName)
    story.expect(
      "a prover with a debugger attached", Status.integrityMismatch.name, try runProver(isTraced: true).statusName)
    let patched = try patchProgram()
    story.expect(
      "a prover whose executable is a patched copy", Status.integrityMismatch.name, try runProver(patched).statusName)
  }

  /// Commands beyond what token and policy allow.
  mutating func attackThePolicy(at endpoint: Endpoint) throws(Failure) {
    try playground.enroll("limited", device: "device", "--allow", "status")
    story.expect(
      "a command that the token does not allow", Status.commandRefused.name, try runProver(state: "limited").statusName)
    story.expect(
      "a command that policy does not know", Status.commandRefused.name,
      try runProver(command: "self-destruct").statusName)
    do throws(FileError) { try Files.removeFile(at: playground.path("other/policy.json")) } catch {
      throw Failure(error)
    }
    let other = try playground.serve("other")
    story.expect(
      "a device without a policy", Status.commandRefused.name,
      try runProver(state: "other-prover", at: other).statusName)
  }

  /// The other way round: a device that is not the one.
  mutating func attackTheProverWithAnImpostor(_ enrolment: Enrolment) throws(Failure) {
    let endpoint = try Endpoint(argument: "unix:\(playground.path("impostor.sock"))")
    try ImpostorDevice(descriptor: enrolment.descriptor).answerOnce(at: endpoint)
    let ending = try runProver(at: endpoint)
    story.expect("an impostor device that says accepted", "exit 3", ending.status.map { "exit \($0)" } ?? "killed")
  }

  private mutating func expect(_ text: String, _ expected: Status, _ actual: Status) {
    story.expect(text, expected.name, actual.name)
  }

  private func makeKey() throws(Failure) -> P256PrivateKey {
    do throws(CryptographyFailure) { return try P256PrivateKey() } catch { throw Failure(.fault, "no key can be made") }
  }

  /// Everything as it should be, but two hours ago: the token was good for one.
  private func enrolTwoHoursAgo(for enrolment: Enrolment) throws(Failure) {
    let clock = ShiftedClock(secondsBack: 7200)
    let client = ServiceClient(path: playground.path("service"), clock: clock)
    var app = AppOptions()
    (app.subject, app.appVersion) = ("holdfast", "0.0.0")
    let baseline = try app.takeBaseline(clock: clock)
    let attestation = try client.attest(baseline.evidence, for: enrolment.descriptor)
    var options = IssuanceOptions()
    options.validitySeconds = 3600
    let (token, _) = try client.issue(attestation, for: enrolment.descriptor, options: options)
    let folder = ProverFolder(path: playground.path("expired"))
    try folder.create()
    try folder.store(
      Enrolment(
        descriptor: enrolment.descriptor, encoding: .cose, configuration: baseline.configuration.encoded(),
        token: token,
        fingerprints: baseline.fingerprints))
  }

  private func copyState(to name: String) throws(Failure) {
    _ = try ChildProcess.run(["/bin/cp", "-r", playground.path("prover"), playground.path(name)])
  }

  private func flipByte(of path: String, at index: Int) throws(Failure) {
    var bytes = try Input.read(path, limit: 1 << 20)
    guard bytes.indices.contains(index) else { throw Failure(.malformed, "\(path) is too short") }
    bytes[index] ^= 1
    try Output.write(bytes, to: path)
  }

  /// A copy of this program with one word of its help text changed.
  private func patchProgram() throws(Failure) -> String {
    let path = playground.path("patched")
    _ = try ChildProcess.run(["/bin/cp", try Playground.program, path])
    var bytes = try Input.read(path, limit: 1 << 30)
    guard let range = bytes.firstRange(of: Array("Offline hardware attestation".utf8)) else {
      throw Failure(.fault, "there is nothing to patch")
    }
    bytes[range.lowerBound] = UInt8(ascii: "o")
    do throws(FileError) { try Files.writeFileAtomically(bytes, at: path, mode: 0o700, overwrite: true) } catch {
      throw Failure(error)
    }
    return path
  }
}

/// The system's clock, set back.
struct ShiftedClock: Clock {
  let secondsBack: UInt64
  private let clock = SystemClock()

  init(secondsBack: UInt64) { self.secondsBack = secondsBack }
  func unixSeconds() -> UInt64? { clock.unixSeconds().map { $0 - secondsBack } }
  func monotonicMilliseconds() -> UInt64 { clock.monotonicMilliseconds() }
}
