/// What came of replaying files: counts, each failure, and why tests were skipped.
package struct Report: Sendable, Equatable {
  /// A test that did not give its result.
  package struct Failure: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    package let file: String
    /// The test's `tcId`.
    package let testID: UInt64
    /// The test's comment, from the file.
    package let comment: String
    /// What it had to give.
    package let expected: ExpectedResult
    /// What happened instead, in a few words, such as `accepted` or `refused: th differs`.
    package let happened: String
  }

  /// Tests of one file that were not replayed for one reason.
  package struct Skip: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    package let file: String
    /// Such as `IV of 8 bytes` or `type KeywrapTest is not replayed`.
    package let reason: String
    /// How many tests.
    package internal(set) var count: Int
  }

  /// How many tests gave their result.
  package private(set) var passed = 0
  /// The tests that did not, in the order of the files.
  package private(set) var failures: [Failure] = []
  /// Why tests were skipped, in the order in which the reasons first came up.
  package private(set) var skips: [Skip] = []

  /// Nothing replayed yet.
  package init() {}

  /// How many tests did not give their result.
  package var failed: Int { failures.count }

  /// How many tests were not replayed.
  package var skipped: Int { skips.reduce(0) { $0 + $1.count } }

  /// The line that ends a replay: `N passed, N failed, N skipped`.
  package var summary: String { "\(passed) passed, \(failed) failed, \(skipped) skipped" }

  /// Takes in what came of another file.
  package mutating func merge(_ other: Report) {
    passed += other.passed
    failures += other.failures
    for skip in other.skips { add(skip) }
  }

  /// Records the outcome of a test.
  mutating func add(_ outcome: Outcome, of test: VectorTest) {
    switch (outcome, test.result) {
    case (.skipped(let reason), _):
      add(Skip(file: test.node.file, reason: reason, count: 1))
    case (.accepted, .valid), (.accepted, .acceptable), (.refused, .invalid), (.refused, .acceptable):
      passed += 1
    case (.accepted, .invalid): fail(test, "accepted")
    case (.differs(let output), _): fail(test, "accepted, but \(output) differs")
    case (.refused(let reason), .valid): fail(test, "refused: \(reason)")
    }
  }

  private mutating func fail(_ test: VectorTest, _ happened: String) {
    failures.append(
      Failure(
        file: test.node.file, testID: test.id, comment: test.comment, expected: test.result, happened: happened))
  }

  private mutating func add(_ skip: Skip) {
    if let index = skips.firstIndex(where: { $0.file == skip.file && $0.reason == skip.reason }) {
      skips[index].count += skip.count
    } else {
      skips.append(skip)
    }
  }
}

/// What came of one test.
enum Outcome: Equatable {
  /// Accepted, and every output that the test names is right.
  case accepted
  /// Refused, for a reason in a few words.
  case refused(String)
  /// Accepted, but this output is another than the test names.
  case differs(String)
  /// Not replayed, for this reason.
  case skipped(String)
}

/// A test was refused; it ends a replay of several steps.
struct Refusal: Error {
  let reason: String

  /// Refuses unless both hold the same bytes.
  static func unless(_ left: [UInt8], _ right: [UInt8], _ name: String) throws(Refusal) {
    guard left == right else { throw Refusal(reason: "\(name) differs") }
  }
}

/// A kind of group that can be replayed: made from what its tests share, then asked for the outcome of each.
protocol ReplayableGroup {
  /// Reads what the tests share. `frame` is the file, for what it says of all groups.
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault)

  /// Reads a test and replays it. It throws only for a test that is not well-formed.
  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome
}

extension VectorFile {
  /// Replays every test of the file.
  ///
  /// Groups of a type that Holdfast has no use for are skipped, and the report says so.
  ///
  /// - Returns: what came of it: ``testCount`` tests passed, failed or skipped.
  /// - Throws: a fault when a group or a test of a known type lacks something it needs; nothing is then reported.
  package func replay() throws(VectorFault) -> Report {
    var report = Report()
    for group in groups { try replay(group, into: &report) }
    return report
  }

  private func replay(_ group: VectorGroup, into report: inout Report) throws(VectorFault) {
    switch group.type {
    case "MacTest": try replay(group, as: MacTest.self, into: &report)
    case "AeadTest": try replay(group, as: AeadTest.self, into: &report)
    case "HkdfTest": try replay(group, as: HkdfTest.self, into: &report)
    case "EcdhEcpointTest": try replay(group, as: EcdhEcpointTest.self, into: &report)
    case "EcdsaP1363Verify": try replay(group, as: EcdsaP1363Verify.self, into: &report)
    case "Measurement": try replay(group, as: MeasurementVectors.self, into: &report)
    case "MeasurementConfiguration": try replay(group, as: ConfigurationVectors.self, into: &report)
    case "ReleaseKeys": try replay(group, as: ReleaseKeyVectors.self, into: &report)
    case "Evidence": try replay(group, as: EvidenceVectors.self, into: &report)
    case "Proof": try replay(group, as: ProofVectors.self, into: &report)
    case "MeasurementTokenCOSE": try replay(group, as: TokenVectors<COSEToken>.self, into: &report)
    case "MeasurementTokenJOSE": try replay(group, as: TokenVectors<JOSEToken>.self, into: &report)
    case "SessionRound": try replay(group, as: RoundVectors.self, into: &report)
    case "SessionM1": try replay(group, as: ChallengeVectors.self, into: &report)
    case "SessionM2": try replay(group, as: AnswerVectors.self, into: &report)
    case "SessionM3": try replay(group, as: VerdictVectors.self, into: &report)
    case "SessionRequest": try replay(group, as: RequestVectors.self, into: &report)
    case "SessionReply": try replay(group, as: ReplyVectors.self, into: &report)
    case "HOTP": try replay(group, as: CodeVectors<CounterMoment>.self, into: &report)
    case "TOTP": try replay(group, as: CodeVectors<TimeMoment>.self, into: &report)
    case "OCRA": try replay(group, as: OCRAVectors.self, into: &report)
    case "OCRASuite": try replay(group, as: OCRASuiteVectors.self, into: &report)
    default:
      for test in group.tests { report.add(.skipped("type \(group.type) is not replayed"), of: test) }
    }
  }

  private func replay<Group: ReplayableGroup>(
    _ group: VectorGroup, as type: Group.Type, into report: inout Report
  ) throws(VectorFault) {
    let replayable = try Group(group.node, frame: frame)
    for test in group.tests { report.add(try replayable.replay(test), of: test) }
  }
}
