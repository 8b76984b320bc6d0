import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

extension Demonstration {
  /// Tries commands beyond those that the token and the policy allow.
  mutating func attackThePolicy() throws(Failure) {
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

  /// Starts a device twice with a random source that returns the same bytes each time.
  mutating func attackTheBoot() throws(Failure) {
    try playground.makeDevice("booted")
    let (first, second) = (try firstNonce(), try firstNonce())
    story.expect(
      "two starts with the same random numbers", "another challenge",
      first == second ? "the same challenge" : "another challenge")
  }

  /// Starts the device and returns its first challenge nonce.
  private func firstNonce() throws(Failure) -> FixedBytes<16> {
    let endpoint = try Endpoint(argument: "unix:\(playground.path("booted")).sock")
    let server = try serveWithoutRandomness(at: endpoint)
    let message = MessageBox()
    Thread.detach {
      message.bytes.withLock { $0 = (try? Attacker.Line(endpoint).receive()) ?? [] }
      server.stop()
    }
    do throws(ServerFault) { try server.run() } catch {
      throw Failure(error, folder: playground.path("booted"))
    }
    let bytes = message.bytes.withLock { $0 }
    do throws(EncodingFault) { return try Challenge(bytes.span).nonce } catch {
      throw Failure(.malformed, "the device sent something else than a challenge")
    }
  }

  private func serveWithoutRandomness(
    at endpoint: Endpoint
  ) throws(Failure) -> DeviceServer<StuckRandom, SystemClock> {
    let path = playground.path("booted")
    let folder: DeviceFolder
    do throws(DeviceFolderFault) { folder = try DeviceFolder.open(at: path) } catch {
      throw Failure(error, folder: path)
    }
    do throws(ServerFault) {
      return try DeviceServer(folder: folder, endpoints: [endpoint], random: StuckRandom(), clock: SystemClock())
    } catch { throw Failure(error, folder: path) }
  }
}

/// A box for a message that another thread received.
private final class MessageBox: Sendable {
  let bytes = Mutex<[UInt8]>([])
}

/// A random source that always returns the same bytes.
private struct StuckRandom: RandomSource {
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices { bytes[index] = 0 }
  }
}

extension Demonstration {
  /// Tries a prover whose program or host has changed.
  mutating func attackTheProver() throws(Failure) {
    try copyState(to: "flipped")
    let flipped = ProverFolder(path: playground.path("flipped"))
    let entry = try reading(flipped) { () throws(StateFolderFault) in try flipped.onlyEntry() }
    try flipByte(of: entry.folder.file(EnrolmentFolder.configurationName), at: 20)
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
    try moveToAnotherMachine()
  }

  /// Copies the state folder to a place where the app has different local storage, as on any other machine.
  private mutating func moveToAnotherMachine() throws(Failure) {
    try copyState(to: "copied")
    let elsewhere = ["XDG_DATA_HOME": playground.path("elsewhere")]
    do throws(FileError) { try Files.createPrivateDirectory(at: playground.path("elsewhere")) } catch {
      throw Failure(error)
    }
    let ending = try ChildProcess.run(
      [
        try Playground.program, "measure", "--state", playground.path("elsewhere-state"), "--out",
        playground.path("evidence"),
      ], environment: elsewhere)
    guard ending.status == 0 else { throw Failure(.fault, "measuring failed: \(ending.output)") }
    story.expect(
      "a copied state folder, another device secret", Status.deviceMismatch.name,
      try runProver(state: "copied", environment: elsewhere).statusName)
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

  /// Copies this program with one word of its help text changed.
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

  /// Tries tokens that were not issued for this device or are no longer valid.
  mutating func attackTheToken(_ attacker: Attacker) throws(Failure) {
    try playground.makeDevice("other")
    try playground.enroll("other-prover", device: "other")
    let other = try playground.enrolment("other-prover")
    expect("the token of another device", .tokenInvalid, try attacker.status(ofToken: other.token))

    let now = SystemClock().unixSeconds() ?? 0
    for (text, format) in [
      ("an unsigned token", MeasurementTokenFormat.unsignedCOSE), ("a token signed by a stranger", .cose),
    ] {
      var stranger = IssuerSecrets(signing: try makeKey())
      let forged = try attacker.forgeToken(format: format, issuer: &stranger, issuedAt: now, expires: now + 3600)
      expect(text, .tokenInvalid, try attacker.status(ofToken: forged))
    }
    try attackItsTimes(attacker.enrolment)
    try attackItsUses(at: attacker.endpoint)
    try shareABaseline()
    try removeTheIssuer()
  }

  private mutating func attackItsTimes(_ enrolment: Enrolment) throws(Failure) {
    try enroll("expired", for: enrolment, by: ShiftedClock(seconds: -7200))
    story.expect("a token that has expired", Status.tokenExpired.name, try runProver(state: "expired").statusName)
    try enroll("future", for: enrolment, by: ShiftedClock(seconds: 500 * 86_400))
    story.expect(
      "a token from the future, to push the device's clock", Status.tokenInvalid.name,
      try runProver(state: "future").statusName)
  }

  /// Tries a second encoding of the same token: the recipient's ephemeral key with p - y instead of y gives the same
  /// secret.
  private mutating func attackItsUses(at endpoint: Endpoint) throws(Failure) {
    try playground.enroll("once", device: "device", "--maximum-uses", "1")
    story.expect("a token for one use", Status.accepted.name, try runProver(state: "once").statusName)
    let attacker = Attacker(enrolment: try playground.enrolment("once"), endpoint: endpoint)
    expect(
      "… encoded anew, with the twin of its ephemeral key", .usesExhausted,
      try attacker.status(ofToken: try attacker.twinOfToken()))
  }

  /// Presents the same evidence for a second device.
  private mutating func shareABaseline() throws(Failure) {
    let (evidence, token) = (playground.path("evidence"), playground.path("attestation"))
    try playground.holdfast("measure", "--state", playground.path("shared"), "--out", evidence)
    func attest(_ device: String) throws(Failure) -> String {
      try ChildProcess.run([
        try Playground.program, "attest", "--service", playground.path("service"), "--device",
        playground.path("\(device).json"), "--evidence", evidence, "--out", token,
      ]).statusName
    }
    story.expect("a baseline is approved for one device", "exit 0", try attest("device"))
    story.expect("… and for a second one", "exit 1", try attest("other"))
  }

  /// Removes the issuer of a remembered token, which the device must then refuse.
  private mutating func removeTheIssuer() throws(Failure) {
    let arguments = ["--dir", playground.path("device"), playground.path("service.json")]
    try playground.holdfast("device", "trust", "--remove", arguments[0], arguments[1], arguments[2])
    story.expect(
      "a remembered token whose issuer was removed", Status.tokenInvalid.name, try runProver().statusName)
    try playground.holdfast("device", "trust", arguments[0], arguments[1], arguments[2])
  }

  private func makeKey() throws(Failure) -> P256PrivateKey {
    do throws(CryptographyFailure) { return try P256PrivateKey() } catch { throw Failure(.fault, "no key can be made") }
  }

  /// Enrols through a service whose clock is wrong. The token is valid for an hour, and everything else is correct.
  private func enroll(_ state: String, for enrolment: Enrolment, by clock: ShiftedClock) throws(Failure) {
    let client = ServiceClient(path: playground.path("service"), clock: clock)
    var app = AppOptions()
    (app.subject, app.appVersion) = (nil, nil)
    let baseline = try app.takeBaseline(clock: clock)
    let attestation = try client.attest(baseline.evidence, for: enrolment.descriptor)
    var options = IssuanceOptions()
    options.validitySeconds = 3600
    let token = try client.issue(attestation, for: enrolment.descriptor, options: options)
    let folder = ProverFolder(path: playground.path(state))
    try writing(folder) { () throws(StateFolderFault) in
      try folder.store(
        Enrolment(
          descriptor: enrolment.descriptor, encoding: .cose, configuration: baseline.configuration.encoded(),
          token: token.bytes, fingerprints: baseline.fingerprints, report: IssuanceReport(token)),
        replacing: false)
    }
  }
}

/// A clock that differs from the system's by a number of seconds.
private struct ShiftedClock: Clock {
  let seconds: Int64
  private let clock = SystemClock()

  init(seconds: Int64) { self.seconds = seconds }
  func unixSeconds() -> UInt64? { clock.unixSeconds().map { UInt64(Int64($0) + seconds) } }
  func monotonicMilliseconds() -> UInt64 { clock.monotonicMilliseconds() }
}

extension Demonstration {
  /// Replays, moves and changes messages.
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

    let moved = try Attacker.Line(attacker.endpoint)
    let challenge = try moved.receive()
    let compatible = try attacker.compatibilityAnswer(from: try attacker.answer(to: challenge), to: challenge)
    expect("a session's proof moved into a compatibility round", .malformed, try moved.exchange(compatible))

    expect("forged proofs under a sniffed reference to the token", .deviceMismatch, try forgeProofs(attacker))
    story.expect("… and its owner comes after that", Status.accepted.name, try runProver().statusName)
  }

  /// Sends nine messages with a genuine reference and random proofs. Returns the last status.
  private func forgeProofs(_ attacker: Attacker) throws(Failure) -> Status {
    let line = try Attacker.Line(attacker.endpoint)
    var status = Status.internal
    for _ in 0..<9 {
      _ = try line.receive()
      status = try line.exchange(try attacker.forgedAnswer())
    }
    return status
  }
}
