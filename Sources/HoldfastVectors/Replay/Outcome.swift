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
