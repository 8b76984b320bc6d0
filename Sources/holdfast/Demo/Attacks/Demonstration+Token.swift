import HoldfastCore
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastTransport

extension Demonstration {
  /// Tokens that were not issued for this device now, or count no more.
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

  /// The recipient's ephemeral key has a twin, with y as p - y, that gives the same secret: other bytes, the same token.
  private mutating func attackItsUses(at endpoint: Endpoint) throws(Failure) {
    try playground.enroll("once", device: "device", "--maximum-uses", "1")
    story.expect("a token for one use", Status.accepted.name, try runProver(state: "once").statusName)
    let attacker = Attacker(enrolment: try playground.enrolment("once"), endpoint: endpoint)
    expect(
      "… encoded anew, with the twin of its ephemeral key", .usesExhausted,
      try attacker.status(ofToken: try attacker.twinOfToken()))
  }

  /// The same evidence for a second device.
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

  /// The device remembers the prover's token, and must not listen to it all the same.
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

  /// Enrols by a service whose clock is wrong, for an hour; everything else is as it should be.
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

/// The system's clock, and some seconds more or less.
private struct ShiftedClock: Clock {
  let seconds: Int64
  private let clock = SystemClock()

  init(seconds: Int64) { self.seconds = seconds }
  func unixSeconds() -> UInt64? { clock.unixSeconds().map { UInt64(Int64($0) + seconds) } }
  func monotonicMilliseconds() -> UInt64 { clock.monotonicMilliseconds() }
}
