import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import PowerCut
import TestSupport
import Testing

import HoldfastProver

@Suite struct PostureRulesTests {
  private let place: TemporaryFolder
  private let prover: Prover

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    prover = Prover(state: place.file("phone"), keys: .default)
  }

  private static func scalar(_ byte: UInt8) throws -> P256PrivateKey {
    var secret = Secret<32>()
    secret.withMutableBytes { for index in $0.indices { $0[index] = byte } }
    return try P256PrivateKey(scalar: secret)
  }

  /// Signs rules with the key of an issuer.
  private static func rules(
    _ number: UInt64, _ rules: [(String, String)] = [], unknown: String = "warn", others: String = "ignore",
    issuer: UInt8 = 1, more: [(String, JSONValue)] = [], type: String = PostureRules.type
  ) throws -> [UInt8] {
    var key = try scalar(issuer)
    let claims = JSONValue.object(
      [
        ("num", .integer(number)), ("iat", .integer(1_700_000_000)), ("default", .string(others)),
        ("unknown", .string(unknown)), ("rules", .object(rules.map { ($0.0, .string($0.1)) })),
      ] + more)
    return try SignedJSON.sign(claims, type: type, with: &key)
  }

  private static func point(_ byte: UInt8 = 1) throws -> P256Point { try scalar(byte).publicPoint }

  private func fault(_ body: () throws(ProverError) -> Void) -> PostureFault? {
    do throws(ProverError) {
      try body()
      return nil
    } catch {
      guard case .posture(let fault) = error else { return nil }
      return fault
    }
  }

  private func install(_ text: [UInt8], _ issuer: P256Point?) -> PostureFault? {
    fault { () throws(ProverError) in _ = try prover.installPostureRules(text, issuer: issuer) }
  }

  @Test func `rules are judged by state, and an unknown finding costs no more than the rules say`() throws {
    let posture = Posture([
      .init(.kernelTainted, .found), .init(.lockdownOff, .unknown), .init(.container, .clear),
      .init(.debugger, .found),
    ])
    let text = try Self.rules(
      1, [("kernel-tainted", "warn"), ("lockdown-off", "refuse"), ("container", "refuse"), ("of-the-future", "refuse")])
    let rules = try PostureRules(text, by: Self.point())
    let verdict = rules.judge(posture)
    #expect(verdict.names(.warn) == ["kernel-tainted", "lockdown-off", "of-the-future"])
    #expect(verdict.action == .warn)
    let strict = try PostureRules(
      Self.rules(1, [("lockdown-off", "refuse"), ("of-the-future", "refuse")], unknown: "refuse"), by: Self.point())
    #expect(strict.judge(posture).names(.refuse) == ["lockdown-off", "of-the-future"])
    let all = try PostureRules(Self.rules(1, unknown: "ignore", others: "refuse"), by: Self.point())
    #expect(all.judge(posture).names(.refuse) == ["kernel-tainted", "debugger"])
  }

  @Test func `a number never goes back, and the same rules may come again`() throws {
    let issuer = try Self.point()
    let fifth = try Self.rules(5)
    #expect(install(fifth, nil) == .rules(.issuerNeeded))
    #expect(install(fifth, issuer) == nil)
    #expect(install(fifth + [0x0a], nil) == nil)
    #expect(install(try Self.rules(5, [("container", "warn")]), nil) == .rules(.notNewer(installed: 5)))
    #expect(install(try Self.rules(4), nil) == .rules(.notNewer(installed: 5)))
    #expect(install(try Self.rules(6), nil) == nil)
    #expect(install(try Self.rules(5), issuer) == .rules(.notNewer(installed: 6)))
    #expect(try prover.folder.postureRules()?.number == 6)
  }

  @Test func `another issuer's rules are refused, whatever their number and whoever names it`() throws {
    #expect(install(try Self.rules(1), try Self.point()) == nil)
    let foreign = try Self.rules(9, issuer: 2)
    #expect(install(foreign, nil) == .rules(.anotherKey))
    #expect(install(foreign, try Self.point(2)) == .rules(.anotherKey))
    #expect(try prover.folder.postureRules()?.number == 1)
  }

  @Test func `a changed byte anywhere refuses the rules`() throws {
    let text = try Self.rules(1, [("container", "refuse")])
    let issuer = try Self.point()
    for index in text.indices {
      var changed = text
      changed[index] ^= 1
      #expect(throws: PostureRulesFault.self, "\(index)") { try PostureRules(changed, by: issuer) }
    }
    for count in stride(from: 0, to: text.count, by: 7) {
      #expect(throws: PostureRulesFault.self) { try PostureRules(Array(text[..<count]), by: issuer) }
    }
  }

  @Test func `claims that are not as documented are refused although they are signed`() throws {
    let issuer = try Self.point()
    let wrong: [[UInt8]] = [
      try Self.rules(0), try Self.rules(1, [("container", "maybe")]), try Self.rules(1, [("Container", "warn")]),
      try Self.rules(1, [("", "warn")]), try Self.rules(1, unknown: "no"), try Self.rules(1, others: ""),
      try Self.rules(1, more: [("extra", .null)]), try Self.rules(1, more: [("until", .string("later"))]),
      try Self.rules(
        1, (0..<65).map { ("a" + String(repeating: "b", count: $0 % 30) + ($0 > 29 ? "-c" : ""), "warn") }),
    ]
    for text in wrong {
      #expect { try PostureRules(text, by: issuer) } throws: { error in
        [.content, .malformed].contains(error as? PostureRulesFault)
      }
    }
    #expect(throws: PostureRulesFault.malformed) {
      try PostureRules(Self.rules(1, type: PostureStatement.type), by: issuer)
    }
    #expect(throws: PostureRulesFault.malformed) { try PostureRules([UInt8](repeating: 0x41, count: 5000), by: issuer) }
  }

  @Test func `a prover whose rules refuse neither enrols nor proves, and one whose rules are damaged does neither`()
    throws
  {
    // Some finding is found or unknown on every host that builds this.
    let text = try Self.rules(3, unknown: "refuse", others: "refuse")
    let names = try PostureRules(text, by: Self.point()).judge(Posture.ofThisHost()).names(.refuse)
    try #require(!names.isEmpty)
    _ = try prover.takeBaseline()
    #expect(install(text, try Self.point()) == nil)
    let refusal = PostureFault.refused(rules: 3, findings: names)
    #expect(fault { () throws(ProverError) in _ = try prover.takeBaseline() } == refusal)
    #expect(fault { () throws(ProverError) in _ = try prover.proofs(nonce: Nonce()) } == refusal)
    let path = place.file("phone") + "/posture_rules.json"
    let whole = try Data(contentsOf: URL(filePath: path))
    for count in [0, 1, whole.count / 2, whole.count - 3] {
      try whole.prefix(count).write(to: URL(filePath: path))
      #expect { try prover.takeBaseline() } throws: { error in
        if case ProverError.state(.damaged) = error { true } else { false }
      }
      #expect { try prover.installPostureRules(Self.rules(9), issuer: Self.point()) } throws: { error in
        if case ProverError.state(.damaged) = error { true } else { false }
      }
    }
  }

  @Test func `a finding that wipes removes every enrolment first, and one that is unknown only refuses`()
    throws
  {
    var prover = prover
    let (front, back) = (try TestLock(id: 7), try TestLock(id: 8))
    for lock in [front, back] { try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) } }
    _ = try prover.begin(for: DeviceID(filledWith: 9))
    #expect(install(try Self.rules(4, [("debugger", "wipe")], unknown: "wipe"), try Self.point()) == nil)
    prover.host.posture = { Posture([.init(.debugger, .unknown)]) }
    guard case .refused? = fault({ () throws(ProverError) in _ = try prover.takeBaseline() }) else {
      return #expect(Bool(false))
    }
    #expect(try prover.status().count == 2)
    prover.host.posture = { Posture([.init(.debugger, .found)]) }
    let wiped = PostureFault.wiped(rules: 4, findings: ["debugger"])
    #expect(fault { () throws(ProverError) in _ = try prover.proofs(nonce: Nonce()) } == wiped)
    guard case .nothingEnrolled = stateFault({ _ = try prover.status() }) else { return #expect(Bool(false)) }
    #expect(throws: ProverError.self) { try prover.checkIsAwaited(for: DeviceID(filledWith: 9)) }
    // The rules stay, so that the host cannot enrol again as it is.
    #expect(try prover.folder.postureRules()?.number == 4)
    #expect(fault { () throws(ProverError) in _ = try prover.takeBaseline() } == wiped)
    prover.host.posture = { Posture(PostureFinding.allCases.map { .init($0, .clear) }) }
    #expect(fault { () throws(ProverError) in _ = try prover.takeBaseline() } == nil)
  }

  @Test func `a power cut while rules wipe leaves each enrolment whole or not at all`() throws {
    var prover = prover
    let lock = try TestLock()
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording { try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) } }
    let first = recorder.changes.count
    #expect(install(try Self.rules(1, [("debugger", "wipe")]), try Self.point()) == nil)
    prover.host.posture = { Posture([.init(.debugger, .found)]) }
    let end = recorder.recording { self.fault { () throws(ProverError) in _ = try prover.takeBaseline() } }
    #expect(end == .wiped(rules: 1, findings: ["debugger"]))
    let last = recorder.changes.count
    let prefix = "phone/devices/\(hexadecimal(lock.descriptor.deviceID))/"
    var counts: Set<Int> = []
    PowerCuts(recorder.changes).forEach(stage: { $0 >= last ? 2 : $0 >= first ? 1 : 0 }) { cut in
      let count = cut.image.files.keys.count { $0.hasPrefix(prefix) }
      if cut.changeCount >= first { counts.insert(count) }
      if cut.changeCount >= last { #expect(count == 0) }
    }
    #expect(counts.count == 2)
  }

  @Test func `rules that only warn say so, also when newer ones are overdue, and nothing is refused`() throws {
    let text = try Self.rules(3, unknown: "warn", others: "warn", more: [("until", .integer(1))])
    #expect(install(text, try Self.point()) == nil)
    let warnings = Warnings()
    let talking = Prover(state: place.file("phone"), keys: .default) { warnings.add($0) }
    _ = try talking.takeBaseline()
    #expect(warnings.numbers.sorted() == [3, 3])
  }

  @Test func `a power cut while rules are installed leaves the old ones or the new ones`() throws {
    let recorder = try DiskRecorder(folder: place.path)
    let (older, newer) = (try Self.rules(1), try Self.rules(2))
    let file = place.file("phone") + "/posture_rules.json"
    try recorder.recording { _ = try prover.installPostureRules(older, issuer: Self.point()) }
    let (first, old) = (recorder.changes.count, Array(try Data(contentsOf: URL(filePath: file))))
    try recorder.recording { _ = try prover.installPostureRules(newer, issuer: nil) }
    let (last, new) = (recorder.changes.count, Array(try Data(contentsOf: URL(filePath: file))))
    #expect(last > first && old != new)
    var wrong: [String] = []
    PowerCuts(recorder.changes).forEach(stage: { $0 >= last ? 2 : $0 >= first ? 1 : 0 }) { cut in
      let found = cut.image.files["phone/posture_rules.json"]
      let isRight =
        cut.changeCount >= last ? found == new : found == new || found == old || found == nil && cut.changeCount < first
      if !isRight { wrong.append("\(cut)") }
    }
    #expect(wrong == [])
  }

  @Test func `a statement is checked by key, and shows nonce, findings and the release that vouches for the key`()
    throws
  {
    let files = HostFiles(deviceSecretPath: place.path + "/data/device.secret")
    let posture = Posture([.init(.container, .found)])
    let nonce = Nonce()
    let text = try prover.sign(posture, judged: (7, .warn), nonce: nonce, now: 1_000, files: files)
    let key = try PostureKey.ofHost(files).publicPoint
    let statement = try PostureStatement(checking: text, by: key) { _ in ProofKeys.default.evidenceKey() }
    #expect(statement.issued == 1_000)
    #expect(statement.nonce == nonce)
    #expect(statement.rulesNumber == 7)
    #expect(statement.action == .warn)
    #expect(statement.isOfRelease == true)
    #expect(statement.findings.first { $0.name == "container" }?.state == .found)
    #expect(statement.findings.count == PostureFinding.allCases.count)
    #expect(try PostureStatement(checking: text, by: key).isOfRelease == nil)
    let other = try PostureStatement(checking: text, by: key) { _ in EvidenceKey() }
    #expect(other.isOfRelease == false)
    #expect(throws: SignedJSON.Fault.anotherKey) { try PostureStatement(checking: text, by: Self.point(3)) }
    for index in stride(from: 0, to: text.count, by: 3) {
      var changed = text
      changed[index] ^= 1
      #expect(throws: SignedJSON.Fault.self, "\(index)") { try PostureStatement(checking: changed, by: key) }
    }
  }
}

/// The numbers in a prover's warnings about its posture.
private final class Warnings: @unchecked Sendable {
  private let lock = NSLock()
  private var found: [UInt64] = []
  var numbers: [UInt64] { lock.withLock { found } }

  func add(_ warning: ProverWarning) {
    switch warning {
    case .posture(let number, _), .outdatedPostureRules(let number, _): lock.withLock { found.append(number) }
    default: break
    }
  }
}
