import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import PowerCut
import Synchronization
import TestSupport
import Testing

import HoldfastProver

@Suite struct TermsTests {
  private let place: TemporaryFolder
  private let host = TestHost()
  private let lock: TestLock
  private let issuer: TermsIssuer
  private let warnings = Warnings()

  private static let issued: UInt64 = 1_790_000_000
  private static let day: UInt64 = 86_400

  init() throws {
    place = try TemporaryFolder()
    lock = try TestLock()
    issuer = try TermsIssuer()
    host.set(clock: Self.issued)
  }

  private func prover(_ name: String = "phone") -> Prover {
    let warnings = warnings
    var prover = Prover(state: place.file(name), keys: .default, warn: { warnings.add($0) })
    prover.host = host.source
    return prover
  }

  private func offline(_ seconds: UInt64) -> Conditions {
    var conditions = Conditions()
    conditions.offlineSeconds = seconds
    return conditions
  }

  private func enroll(_ conditions: Conditions, issued: UInt64 = issued, replacing: Bool = false) throws {
    try prover().enroll(for: lock.descriptor, replacing: replacing) { evidence in
      let token = try lock.token(for: evidence)
      return MeasurementToken(token.bytes, terms: try issuer.terms(for: token.bytes, conditions, issued: issued))
    }
  }

  /// The refusal of the prover itself; nil if it begins to talk to the device.
  private func refusal() throws -> ProofRefusal? {
    let (ours, theirs) = try Connection.pair()
    theirs.shutdown()
    do {
      _ = try prover().prove(Request(command: "status"), over: TestChannel(ours))
      return nil
    } catch {
      switch error {
      case .refused(let refusal): return refusal
      case .transport(.closed): return nil
      default: throw error
      }
    }
  }

  private func isRefusedForBeingOffline() throws -> Bool {
    if case .offlineLimit = try refusal() { true } else { false }
  }

  @Test func `the prover warns in the last tenth, and then refuses until it is enrolled again`() throws {
    try enroll(offline(10 * Self.day))
    for (days, isNear) in [(0, false), (8, false), (9, true)] {
      host.set(clock: Self.issued + UInt64(days) * Self.day)
      #expect(try refusal() == nil, "\(days)")
      #expect(warnings.take().contains { if case .offlineLimitNear = $0 { true } else { false } } == isNear, "\(days)")
    }
    let until = Self.issued + 10 * Self.day
    host.set(clock: until - 1)
    #expect(try refusal() == nil)
    host.set(clock: until)
    #expect(try refusal() == .offlineLimit(lock.descriptor.deviceID, until: until))
    let state = try #require(try prover().status(now: until).first)
    #expect(state.validity == .offlineLimit && state.offlineLimit?.secondsLeft == 0)
    try enroll(offline(10 * Self.day), issued: until, replacing: true)
    #expect(try refusal() == nil)
  }

  @Test func `a refused proof sends nothing and measures nothing, and neither does one that is printed`() throws {
    try enroll(offline(1))
    host.set(clock: Self.issued + 1)
    let (ours, theirs) = try Connection.pair()
    let stages = Mutex<[ProofStage]>([])
    #expect(throws: ProverError.self) {
      try prover().prove(
        Request(command: "status"), over: TestChannel(ours),
        options: ProofOptions(progress: { stage in stages.withLock { $0.append(stage) } }))
    }
    #expect(stages.withLock { $0 }.isEmpty)
    ours.shutdown()
    #expect(throws: TransportError.closed) {
      try theirs.receive(by: Deadline(afterMilliseconds: 60_000), wholeWithin: 60_000)
    }
    let fault = #expect(throws: ProverError.self) { try prover().proofs(nonce: Nonce()) }
    guard case .refused(.offlineLimit) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `a clock that is set back extends nothing, and is told`() throws {
    try enroll(offline(10 * Self.day))
    host.set(clock: Self.issued + 9 * Self.day)
    #expect(try refusal() == nil)
    _ = warnings.take()
    host.set(clock: Self.issued - 100 * Self.day)
    #expect(try refusal() == nil)
    let told = warnings.take()
    #expect(told.contains { if case .clockBehind = $0 { true } else { false } })
    #expect(told.contains { if case .offlineLimitNear = $0 { true } else { false } })
    let state = try #require(try prover().status(now: Self.issued).first)
    #expect(state.offlineLimit?.secondsLeft == Self.day)
    // The host runs on for a day, with a clock that stands still: the kernel's uptime counts.
    host.run(seconds: Self.day)
    #expect(try isRefusedForBeingOffline())
    // A restart hides nothing that was recorded before it.
    host.restart()
    #expect(try isRefusedForBeingOffline())
    // Without a clock and after a restart, the time that was recorded goes on with the uptime.
    try enroll(offline(10 * Self.day), replacing: true)
    host.restart()
    host.set(clock: nil)
    #expect(try !isRefusedForBeingOffline())
    let device = lock.descriptor.deviceID
    try prover().folder.requiredEntry(of: device).folder.raiseLatestTime(host.source, to: Self.issued + 9 * Self.day)
    host.run(seconds: Self.day)
    #expect(try isRefusedForBeingOffline())
  }

  @Test func `a clock that was far ahead once is forgiven by the next enrolment`() throws {
    try enroll(offline(10 * Self.day))
    host.set(clock: Self.issued + 1000 * Self.day)
    #expect(try isRefusedForBeingOffline())
    host.set(clock: Self.issued + 60)
    #expect(try isRefusedForBeingOffline())
    try enroll(offline(10 * Self.day), issued: Self.issued + 60, replacing: true)
    #expect(try refusal() == nil)
  }

  @Test func `the clock in a sealed verdict counts, also when the host's is behind`() throws {
    // The device's clock says testTime; the terms are an hour older.
    let issued = testTime - 3600
    host.set(clock: issued)
    try enroll(offline(3601), issued: issued)
    let (ours, theirs) = try Connection.pair()
    let device = try lock.serve([theirs])
    let outcome = try prover().prove(Request(command: "status"), over: TestChannel(ours))
    ours.shutdown()
    device.join()
    #expect(outcome.verdict.isAuthenticated)
    let clock = try #require(outcome.deviceClock)
    #expect(clock >= testTime)
    let state = try #require(try prover().status(now: issued).first)
    #expect(state.offlineLimit?.secondsLeft == issued + 3601 - clock)
    host.run(seconds: 2)
    #expect(try isRefusedForBeingOffline())
  }

  @Test func `terms of another token, another issuer's report or a changed byte are not stored`() throws {
    let other = try issuer.terms(for: [1, 2, 3], offline(60), issued: Self.issued)
    var changed: [UInt8] = []
    let fault = stateFault {
      try prover().enroll(for: lock.descriptor) { MeasurementToken(try lock.token(for: $0).bytes, terms: other) }
    }
    guard case .badTerms = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    let again = stateFault {
      try prover().enroll(for: lock.descriptor) { evidence in
        let token = try lock.token(for: evidence)
        changed = try issuer.terms(for: token.bytes, offline(60), issued: Self.issued)
        changed[changed.count - 10] ^= 1
        return MeasurementToken(token.bytes, terms: changed)
      }
    }
    guard case .badTerms = again else { return #expect(Bool(false), "\(String(describing: again))") }
    #expect(throws: ProverError.self) { try prover().status() }
  }

  @Test(arguments: ["terms.jwt", "latest_time.json"])
  func `a file of the terms that is cut, foreign or missing makes the prover refuse`(name: String) throws {
    try enroll(offline(Self.day))
    let path = try #require(try prover().folder.entries().first).folder.file(name)
    let whole = try Files.readFile(at: path, limit: 65_536)
    for count in [0, 1, whole.count / 2, whole.count - 1] {
      try Files.writeFileAtomically(Array(whole[..<count]), at: path, overwrite: true)
      guard case .damaged = stateFault({ _ = try refusal() }) else { return #expect(Bool(false), "\(count)") }
      #expect(try prover().status().first?.validity == .damaged)
    }
    try Files.removeFile(at: path)
    guard case .missing = stateFault({ _ = try refusal() }) else { return #expect(Bool(false)) }
    try Files.writeFileAtomically(whole, at: path, overwrite: true)
    #expect(try refusal() == nil)
  }

  @Test func `an enrolment whose terms were exchanged for other signed ones is damaged`() throws {
    try enroll(offline(1))
    let entry = try #require(try prover().folder.entries().first)
    let longer = try issuer.terms(for: try entry.load().token, offline(Self.day), issued: Self.issued)
    try Files.writeFileAtomically(longer, at: entry.folder.file("terms.jwt"), overwrite: true)
    guard case .damaged = stateFault({ _ = try refusal() }) else { return #expect(Bool(false)) }
  }

  @Test func `settings are read by the app, and the next enrolment changes them`() throws {
    var conditions = Conditions()
    conditions.settings = AppSettings(.text, Array("lights=on".utf8))
    try enroll(conditions)
    #expect(try prover().status().first?.settings?.text == "lights=on")
    conditions.settings = AppSettings(.bytes, [0, 255])
    try enroll(conditions, replacing: true)
    #expect(try prover().status().first?.settings?.bytes == [0, 255])
    try prover().enroll(for: lock.descriptor, replacing: true) { try lock.token(for: $0) }
    let state = try #require(try prover().status().first)
    #expect(state.settings == nil && state.offlineLimit == nil)
    #expect(!warnings.take().contains { if case .anotherIssuerKey = $0 { true } else { false } })
  }

  /// The answer of an online service to `POST /v1/tokens`.
  private func answer(_ token: MeasurementToken, _ members: [(String, JSONValue)]) -> [UInt8] {
    var text: [UInt8] = []
    text.append(asPaddedBase64: token.bytes.span)
    return JSONValue.object([("token", .string(String(decoding: text, as: UTF8.self)))] + members).pretty()
  }

  @Test func `a whole answer that is accepted brings the terms and the settings along`() throws {
    let evidence = try prover().begin(for: lock.descriptor.deviceID).evidence
    let token = try lock.token(for: evidence)
    var conditions = offline(Self.day)
    conditions.settings = AppSettings(.text, Array("lights=on".utf8))
    let terms = try issuer.terms(for: token.bytes, conditions, issued: Self.issued)
    let text = JSONValue.string(String(decoding: terms, as: UTF8.self))
    let whole = answer(token, [("format", .string("cose")), ("terms", text)])
    try prover().accept(MeasurementToken(answer: whole), for: lock.descriptor)
    let state = try #require(try prover().status(now: Self.issued).first)
    #expect(state.settings?.text == "lights=on")
    #expect(state.offlineLimit?.secondsLeft == Self.day)
    // A token by itself is taken as before.
    #expect(try MeasurementToken(answer: token.bytes).bytes == token.bytes)
    #expect(try MeasurementToken(answer: token.bytes).terms == nil)
  }

  @Test func `an answer that is not as documented is no token, and terms of another token are refused`() throws {
    let evidence = try prover().begin(for: lock.descriptor.deviceID).evidence
    let token = try lock.token(for: evidence)
    let wrong: [[UInt8]] = [
      answer(token, [("extra", .null)]), answer(token, [("format", .string("jose"))]),
      answer(token, [("format", .string("zip"))]), answer(token, [("format", .integer(1))]),
      answer(token, [("claims", .object([]))]), answer(token, [("claims", .null)]), answer(token, [("terms", .null)]),
      answer(token, [("token", .string("AA=="))]), Array("{\"token\": \"A\"}".utf8), Array("{}".utf8),
      Array(" {\"token\"".utf8), [UInt8](repeating: UInt8(ascii: "{"), count: 65_537),
    ]
    for bytes in wrong {
      let fault = #expect(throws: StateFolderFault.self) { try MeasurementToken(answer: bytes) }
      guard case .notAToken = fault else { return #expect(Bool(false), "\(String(decoding: bytes, as: UTF8.self))") }
    }
    let foreign = try issuer.terms(for: [1, 2, 3], offline(60), issued: Self.issued)
    let text = JSONValue.string(String(decoding: foreign, as: UTF8.self))
    let fault = stateFault {
      try prover().accept(MeasurementToken(answer: answer(token, [("terms", text)])), for: lock.descriptor)
    }
    guard case .badTerms = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `another issuer's key is told when it replaces the one that was kept`() throws {
    try enroll(offline(60))
    let other = try TermsIssuer()
    try prover().enroll(for: lock.descriptor, replacing: true) { evidence in
      let token = try lock.token(for: evidence)
      return MeasurementToken(token.bytes, terms: try other.terms(for: token.bytes, offline(60), issued: Self.issued))
    }
    #expect(warnings.take().contains { if case .anotherIssuerKey = $0 { true } else { false } })
  }

  private func rules(_ rules: [(ComplianceRule.Subject, String, ComplianceRule.Action)]) throws -> Conditions {
    var conditions = Conditions()
    conditions.rules = try rules.map { subject, text, action in
      let version = try #require(DottedVersion(text))
      return try #require(ComplianceRule(subject, .atLeast, [version], otherwise: action))
    }
    return conditions
  }

  @Test func `a version that does not comply is warned of, blocks, or wipes the enrolment`() throws {
    host.set(release: "ID=debian\nVERSION_ID=\"12\"\n")
    try enroll(try rules([(.os, "13", .warn), (.app, "1.2.3", .wipe)]))
    #expect(warnings.take().contains { if case .notCompliant = $0 { true } else { false } })
    #expect(try refusal() == nil)
    #expect(warnings.take().contains { if case .notCompliant = $0 { true } else { false } })
    // The host falls back behind what the terms require.
    try enroll(try rules([(.os, "12", .block)]), replacing: true)
    host.set(release: "ID=debian\nVERSION_ID=\"11\"\n")
    guard case .notCompliant(_, let finding) = try refusal() else { return #expect(Bool(false)) }
    #expect(finding.version?.text == "11")
    #expect(try prover().status().first?.validity == .notCompliant)
    // A system that does not say its version is blocked, but not wiped.
    try enrollAgain(try rules([(.os, "11", .wipe)]))
    host.set(release: nil)
    guard case .notCompliant(_, let unknown) = try refusal() else { return #expect(Bool(false)) }
    #expect(unknown.version == nil && unknown.action == .block)
    host.set(release: "ID=debian\nVERSION_ID=10\n")
    guard case .wiped = try refusal() else { return #expect(Bool(false)) }
    guard case .nothingEnrolled = stateFault({ _ = try prover().status() }) else { return #expect(Bool(false)) }
    #expect(try Files.names(inFolder: place.file("phone/devices"), limit: 10).filter { $0 != "lock" } == [])
  }

  @Test func `a rule that wipes leaves an enrolment that has replaced its own meanwhile`() throws {
    host.set(release: "ID=debian\nVERSION_ID=12\n")
    try enroll(try rules([(.os, "12", .wipe)]))
    let older = try #require(try prover().folder.entries().first).load()
    try enrollAgain(offline(Self.day))
    #expect(try !prover().folder.remove(older))
    #expect(try refusal() == nil)
    #expect(try prover().status().first?.offlineLimit != nil)
    let newer = try #require(try prover().folder.entries().first).load()
    #expect(try prover().folder.remove(newer))
    // An enrolment that is gone already need not be removed.
    #expect(try prover().folder.remove(newer))
    #expect(throws: ProverError.self) { try prover().status() }
  }

  private func enrollAgain(_ conditions: Conditions) throws { try enroll(conditions, replacing: true) }

  @Test func `terms that block are not stored, and the older enrolment stays`() throws {
    host.set(release: "ID=debian\nVERSION_ID=12\n")
    try enroll(offline(Self.day))
    let fault = #expect(throws: ProverError.self) { try enroll(try rules([(.app, "2", .block)]), replacing: true) }
    guard case .refused(.notCompliant) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    #expect(try refusal() == nil)
    let wiped = #expect(throws: ProverError.self) { try enroll(try rules([(.app, "2", .wipe)]), replacing: true) }
    guard case .refused(.wiped) = wiped else { return #expect(Bool(false), "\(String(describing: wiped))") }
    #expect(throws: ProverError.self) { try prover().status() }
  }

  @Test func `only the issuer that an enrolment knows may have it wiped`() throws {
    host.set(release: "ID=debian\nVERSION_ID=12\n")
    try enroll(offline(Self.day))
    let stranger = try TermsIssuer()
    let conditions = try rules([(.app, "2", .wipe)])
    let refused = #expect(throws: ProverError.self) {
      try prover().enroll(for: lock.descriptor, replacing: true) { evidence in
        let token = try lock.token(for: evidence)
        return MeasurementToken(
          token.bytes, terms: try stranger.terms(for: token.bytes, conditions, issued: Self.issued))
      }
    }
    guard case .refused(.notCompliant) = refused else { return #expect(Bool(false), "\(String(describing: refused))") }
    #expect(try prover().status().count == 1)
  }

  @Test func `newer terms of the same issuer renew an enrolment, and others change nothing`() throws {
    try enroll(offline(60))
    let (prover, device) = (prover(), lock.descriptor.deviceID)
    let token = try #require(try prover.folder.entries().first).load().token
    var settled = offline(60)
    settled.settings = AppSettings(.text, Array("a=1".utf8))
    host.set(clock: Self.issued + 61)
    host.run(seconds: 61)
    #expect(try prover.status(now: Self.issued + 61).first?.validity == .offlineLimit)
    let stranger = try TermsIssuer()
    let wrong = [
      try stranger.terms(for: token, settled, issued: Self.issued + 61),
      try issuer.terms(for: [1, 2, 3], settled, issued: Self.issued + 61),
      try issuer.terms(for: token, settled, issued: Self.issued - 1), [],
    ]
    for text in wrong {
      guard case .badTerms = stateFault({ _ = try prover.renewTerms(text, for: device) }) else {
        return #expect(Bool(false))
      }
      #expect(try prover.status(now: Self.issued + 61).first?.validity == .offlineLimit)
    }
    let newer = try issuer.terms(for: token, settled, issued: Self.issued + 61)
    #expect(try prover.renewTerms(newer, for: device))
    #expect(try !prover.renewTerms(newer, for: device))
    let state = try #require(try prover.status(now: Self.issued + 61).first)
    #expect(state.validity != .offlineLimit && state.settings?.text == "a=1")
    #expect(try #require(try prover.folder.entries().first).load().token == token)
    // Terms that block change nothing.
    let blocking = try issuer.terms(for: token, try rules([(.app, "2", .block)]), issued: Self.issued + 62)
    #expect(throws: ProverError.self) { try prover.renewTerms(blocking, for: device) }
    #expect(try prover.status(now: Self.issued + 61).first?.settings?.text == "a=1")
  }

  @Test func `a rule for another system does not apply`() throws {
    host.set(release: "ID='arch'\n")
    var conditions = Conditions()
    let version = try #require(DottedVersion("12"))
    conditions.rules = [try #require(ComplianceRule(.os, of: "debian", .atLeast, [version], otherwise: .wipe))]
    try enroll(conditions)
    #expect(try refusal() == nil)
  }

  @Test func `processes that prove at once all raise the time, and it never goes back`() async throws {
    try enroll(offline(1000 * Self.day))
    let folder = try #require(try prover().folder.entries().first).folder
    await withTaskGroup { group in
      for step in 1...8 {
        let source = TestHost(clock: Self.issued + UInt64(step % 3) * Self.day).source
        group.addTask { for _ in 0..<5 { _ = try? folder.raiseLatestTime(source) } }
      }
    }
    #expect(try folder.latestTime().seconds == Self.issued + 2 * Self.day)
  }

  @Test func `after a power cut at any write, settings and limit are those before or after, and time never goes back`()
    throws
  {
    let baseline = try prover().takeBaseline()
    let tokens: [[UInt8]] = [[0xd2, 1], [0xd2, 2]]
    let watched = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: watched.path)
    var prover = Prover(state: watched.file("phone"), keys: .default)
    prover.host = host.source
    var counts: [Int] = []
    for (index, token) in tokens.enumerated() {
      var conditions = offline(Self.day)
      conditions.settings = AppSettings(.bytes, [UInt8(index)])
      let terms = try issuer.terms(for: token, conditions, issued: Self.issued)
      try recorder.recording {
        try prover.store(
          MeasurementToken(token, terms: terms), of: baseline, for: lock.descriptor, replacing: index > 0)
      }
      counts.append(recorder.changes.count)
    }
    host.set(clock: Self.issued + 500)
    let folder = try #require(try prover.folder.entries().first).folder
    try recorder.recording { _ = try folder.raiseLatestTime(host.source) }
    counts.append(recorder.changes.count)
    var wrong: [String] = []
    var seen: Set<Int> = []
    let stage = { (count: Int) in counts.prefix { $0 <= count }.count }
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      let found = try TemporaryFolder(in: memoryFolder)
      try cut.image.write(to: found.path)
      let done = stage(cut.changeCount)
      var after = Prover(state: found.file("phone"), keys: .default)
      after.host = host.source
      guard let entry = try? after.folder.entries().first, let enrolment = try? entry.load(),
        let settings = enrolment.terms?.terms.conditions.settings?.bytes.first,
        let time = try? entry.folder.latestTime().seconds
      else {
        if done > 0 { wrong.append("\(cut)") }
        return
      }
      seen.insert(Int(settings))
      let isRight =
        (done == 0 ? settings == 0 : done == 1 ? settings <= 1 : settings == 1)
        && (done == 3 ? time == Self.issued + 500 : time == Self.issued || time == Self.issued + 500)
      if !isRight { wrong.append("\(cut)") }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(3))")
    #expect(seen == [0, 1])
  }

  @Test func `a full or read-only disk does not stop a proof, but is told`() throws {
    try enroll(offline(10 * Self.day))
    let folder = try #require(try prover().folder.entries().first).folder
    let recorder = try DiskRecorder(folder: folder.path)
    recorder.fault = DiskFault(operation: 0, kind: .full, lasts: true)
    host.set(clock: Self.issued + Self.day)
    #expect(try recorder.recording { try refusal() } == nil)
    recorder.fault = nil
    #expect(warnings.take().contains { if case .unrecordedTime = $0 { true } else { false } })
    #expect(try folder.latestTime().seconds == Self.issued)
  }
}

/// A host whose clock, uptime and system a test sets.
private final class TestHost: Sendable {
  private struct State {
    var clock: UInt64?
    var uptime: UInt64 = 1000
    var start = 0
    var release: String? = "ID=debian\nVERSION_ID=12\n"
  }

  private let state = Mutex(State())

  init(clock: UInt64? = nil) { set(clock: clock) }

  func set(clock: UInt64?) { state.withLock { $0.clock = clock } }
  func set(release: String?) { state.withLock { $0.release = release } }
  func run(seconds: UInt64) { state.withLock { $0.uptime += seconds } }

  func restart() {
    state.withLock {
      $0.start += 1
      $0.uptime = 1
    }
  }

  var source: HostSource {
    HostSource(
      unixSeconds: { self.state.withLock { $0.clock } },
      uptime: {
        self.state.withLock {
          Uptime(bootID: "00000000-0000-0000-0000-00000000000\($0.start)", seconds: $0.uptime)
        }
      },
      release: { self.state.withLock { $0.release.map { Array($0.utf8) } } })
  }
}

/// An issuer that signs terms.
final class TermsIssuer {
  private var key: P256PrivateKey

  init() throws { key = try P256PrivateKey() }

  func terms(for token: [UInt8], _ conditions: Conditions, issued: UInt64) throws -> [UInt8] {
    let terms = Terms(
      issuer: BoundedText("issuer.test"), tokenDigest: try Terms.digest(of: token), issued: issued,
      subject: BoundedText("app.test"),
      version: AppVersion(major: 1, minor: 2, patch: 3), conditions: conditions)
    let point = key.publicPoint
    return try SignedTerms(terms, point: point) { (digest) throws(CryptographyFailure) in try key.sign(digest) }.bytes
  }
}

/// The warnings of a prover.
private final class Warnings: Sendable {
  private let all = Mutex<[ProverWarning]>([])

  func add(_ warning: ProverWarning) { all.withLock { $0.append(warning) } }

  func take() -> [ProverWarning] {
    all.withLock { list in
      defer { list = [] }
      return list
    }
  }
}
