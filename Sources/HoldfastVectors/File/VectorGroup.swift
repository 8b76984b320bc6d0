/// A group of tests: what they share, and the tests.
struct VectorGroup {
  let type: String
  let node: VectorNode
  let tests: [VectorTest]

  /// Reads the frame of a group, whose type must be one of `types` where those are known.
  init(_ node: VectorNode, types: [String]?) throws(VectorFault) {
    let type = try node.member("type")
    self.type = try type.text()
    if let types, !types.contains(self.type) { throw type.fault(.unknownType) }
    self.node = node
    var tests: [VectorTest] = []
    for test in try node.member("tests").elements() { tests.append(try VectorTest(test)) }
    self.tests = tests
  }
}

/// One test: its number, what it is about and what it must give.
struct VectorTest {
  let id: UInt64
  /// What is special about it; empty where the file does not say.
  let comment: String
  let result: ExpectedResult
  let node: VectorNode

  init(_ node: VectorNode) throws(VectorFault) {
    self.node = node
    id = try node.member("tcId").number()
    comment = try node.optional("comment")?.text() ?? ""
    for flag in try node.optional("flags")?.elements() ?? [] { _ = try flag.text() }
    let result = try node.member("result")
    guard let expected = ExpectedResult(rawValue: try result.text()) else { throw result.fault(.unknownResult) }
    self.result = expected
  }

  /// The bytes of a member that the test must have.
  func bytes(_ name: String) throws(VectorFault) -> [UInt8] {
    try node.member(name).bytes()
  }
}

/// What a test must give. Source: C2SP/wycheproof, `doc/formats.md`.
public enum ExpectedResult: String, Sendable {
  /// It must be accepted, with the outputs that the test names.
  case valid
  /// It must be refused.
  case invalid
  /// It may be either; what is accepted must still have the outputs that the test names.
  case acceptable
}
