/// What came of replaying files: counts, each failure, and why tests were skipped.
public struct Report: Sendable, Equatable {
  /// A test that did not give its result.
  public struct Failure: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    public let file: String
    /// The test's `tcId`.
    public let testID: UInt64
    /// The test's comment, from the file.
    public let comment: String
    /// What it had to give.
    public let expected: ExpectedResult
    /// What happened instead, in a few words, such as `accepted` or `refused: th differs`.
    public let happened: String
  }

  /// Tests of one file that were not replayed for one reason.
  public struct Skip: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    public let file: String
    /// Such as `IV of 8 bytes` or `type KeywrapTest is not replayed`.
    public let reason: String
    /// How many tests.
    public internal(set) var count: Int
  }

  /// How many tests gave their result.
  public private(set) var passed = 0
  /// The tests that did not, in the order of the files.
  public private(set) var failures: [Failure] = []
  /// Why tests were skipped, in the order in which the reasons first came up.
  public private(set) var skips: [Skip] = []

  /// Nothing replayed yet.
  public init() {}

  /// How many tests did not give their result.
  public var failed: Int { failures.count }

  /// How many tests were not replayed.
  public var skipped: Int { skips.reduce(0) { $0 + $1.count } }

  /// The line that ends a replay: `N passed, N failed, N skipped`.
  public var summary: String { "\(passed) passed, \(failed) failed, \(skipped) skipped" }

  /// Takes in what came of another file.
  public mutating func merge(_ other: Report) {
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
