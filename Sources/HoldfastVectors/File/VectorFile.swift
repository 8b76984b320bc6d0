import HoldfastCore
import HoldfastFormats

/// A file of test vectors in the format of Wycheproof, from Holdfast or another project, whose frame was checked.
///
/// Source: `vectors/README.md`; C2SP/wycheproof, `doc/formats.md` and `schemas/`. Unknown members are ignored.
package struct VectorFile {
  /// The largest file that is read, in bytes.
  package static let maximumByteCount = 64 << 20

  /// The file's name, as the caller gave it.
  package let name: String
  /// The number of tests in all groups whose tests can be counted, with those that are malformed.
  package private(set) var testCount = 0
  /// The faults in the frame: each leaves out a test, a group, or nothing.
  package private(set) var faults: [VectorFault] = []
  let frame: VectorNode
  private(set) var groups: [VectorGroup] = []

  /// Reads a file and checks its frame: that it is JSON, names a schema and has groups.
  ///
  /// All other faults are in ``faults``, and the tests that they do not concern can be replayed: a group or a test that lacks a
  /// member, a wrong `numberOfTests`, a `tcId` that occurs twice, a `result` that is none of the three values.
  ///
  /// - Parameters:
  ///   - bytes: The whole file.
  ///   - name: The file's name in faults and reports.
  /// - Throws: A fault with the location at which the file is malformed.
  package init(parsing bytes: [UInt8], name: String) throws(VectorFault) {
    let root: JSONValue
    do throws(JSONFault) {
      root = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount, otherNumbers: .asText)
    } catch {
      throw VectorFault(file: name, location: "", kind: error == .tooLong ? .tooLong : .notJSON)
    }
    self.name = name
    frame = VectorNode(value: root, file: name, location: "")
    if root["schema"] == nil, try readUnframedGroups() {
      if testCount == 0, faults.isEmpty { faults.append(frame.fault(.noTests)) }
    } else {
      let schemaName = try frame.member("schema")
      guard let schema = VectorSchema(file: try schemaName.text()) else { throw schemaName.fault(.unknownSchema) }
      do throws(VectorFault) { try checkTextMembers() } catch { faults.append(error) }
      readGroups(try frame.member("testGroups").elements()) { (node, faults) throws(VectorFault) in
        try VectorGroup(node, types: schema.ownTypes, &faults)
      }
      do throws(VectorFault) { try checkNumberOfTests() } catch { faults.append(error) }
    }
    leaveOutRepeatedTests()
  }

  /// Reads each group; one that cannot be read is a fault.
  private mutating func readGroups(
    _ nodes: [VectorNode], _ read: (VectorNode, inout [VectorFault]) throws(VectorFault) -> VectorGroup
  ) {
    for node in nodes {
      testCount += node.value["tests"]?.elements?.count ?? 0
      do throws(VectorFault) { groups.append(try read(node, &faults)) } catch { faults.append(error) }
    }
  }

  /// Reads the tests of a file in another form than Wycheproof's: an example of the COSE working group or of RFC 7520, two nested
  /// ones, a JSON Web Key, or a file of NIST's. Returns false if the file has none of these forms.
  private mutating func readUnframedGroups() throws(VectorFault) -> Bool {
    if frame.value["algorithm"]?.text == "KDA" {
      readGroups(try frame.member("testGroups").elements()) { (node, faults) throws(VectorFault) in
        try VectorGroup(keyDerivation: node, &faults)
      }
      return true
    }
    guard let examples = try examples() else { return false }
    groups = [examples]
    testCount = examples.tests.count
    return true
  }

  private func examples() throws(VectorFault) -> VectorGroup? {
    if frame.value["kty"] != nil { return try VectorGroup(examples: [frame], type: "JWKExample") }
    if let inner = frame.optional("sign"), let outer = frame.optional("encrypt") {
      return try VectorGroup(examples: [inner, outer], type: "JOSEExample")
    }
    guard frame.value["input"] != nil, let output = frame.value["output"] else { return nil }
    let isCOSE = output["cbor"] != nil || output.members == nil
    return try VectorGroup(examples: [frame], type: isCOSE ? "COSEExample" : "JOSEExample")
  }

  private func checkNumberOfTests() throws(VectorFault) {
    let member = try frame.member("numberOfTests")
    let stated = try member.number()
    let areCounted = try frame.member("testGroups").elements().allSatisfy { $0.value["tests"]?.elements != nil }
    guard areCounted else { return }
    guard stated == testCount else { throw member.fault(.wrongNumberOfTests(stated: stated, found: testCount)) }
    guard testCount > 0 else { throw member.fault(.noTests) }
  }

  /// Takes each test out whose `tcId` another one before it has.
  private mutating func leaveOutRepeatedTests() {
    var seen: Set<UInt64> = []
    for index in groups.indices {
      var tests: [VectorTest] = []
      for test in groups[index].tests {
        if seen.insert(test.id).inserted {
          tests.append(test)
        } else {
          faults.append(test.node.fault(.duplicateTestID(test.id)).inTest(test.id))
        }
      }
      groups[index].tests = tests
    }
  }

  /// Checks the types of the members that only inform a reader. They are optional, because not all Wycheproof files
  /// have them.
  private func checkTextMembers() throws(VectorFault) {
    _ = try frame.optional("algorithm")?.text()
    for line in try frame.optional("header")?.elements() ?? [] { _ = try line.text() }
    if let notes = frame.optional("notes"), notes.value.members == nil { throw notes.fault(.wrongType) }
  }
}

/// A group of tests, with the members that they share.
struct VectorGroup {
  private(set) var type = ""
  let node: VectorNode
  fileprivate(set) var tests: [VectorTest] = []

  /// Reads the frame of a group, and each test that is not malformed. The type must be one of `types`, unless that is nil.
  init(_ node: VectorNode, types: [String]?, _ faults: inout [VectorFault]) throws(VectorFault) {
    self.node = node
    try readTests(&faults) { (test) throws(VectorFault) in try VectorTest(test) }
    do throws(VectorFault) {
      let type = try node.member("type")
      self.type = try type.text()
      if let types, !types.contains(self.type) { throw type.fault(.unknownType) }
    } catch { throw error.inGroup(of: tests) }
  }

  private mutating func readTests(
    _ faults: inout [VectorFault], _ read: (VectorNode) throws(VectorFault) -> VectorTest
  ) throws(VectorFault) {
    for test in try node.member("tests").elements() {
      do throws(VectorFault) { tests.append(try read(test)) } catch { faults.append(error) }
    }
  }

  /// Reads examples, which have no frame, no numbers and no group.
  init(examples nodes: [VectorNode], type: String) throws(VectorFault) {
    self.type = type
    node = nodes[0]
    var tests: [VectorTest] = []
    for node in nodes { tests.append(try VectorTest(example: node, id: UInt64(tests.count + 1))) }
    self.tests = tests
  }

  /// Reads a group of NIST's tests of key derivation.
  init(keyDerivation node: VectorNode, _ faults: inout [VectorFault]) throws(VectorFault) {
    type = "KeyDerivationTest"
    self.node = node
    try readTests(&faults) { (test) throws(VectorFault) in try VectorTest(keyDerivation: test) }
  }
}

/// A test, with its number, comment, flags and expected result.
struct VectorTest {
  let id: UInt64
  /// The comment; empty if the file has none.
  let comment: String
  let result: ExpectedResult
  let node: VectorNode

  init(_ node: VectorNode) throws(VectorFault) {
    self.node = node
    id = try node.member("tcId").number()
    do throws(VectorFault) {
      comment = try node.optional("comment")?.text() ?? ""
      for flag in try node.optional("flags")?.elements() ?? [] { _ = try flag.text() }
      let result = try node.member("result")
      guard let expected = ExpectedResult(rawValue: try result.text()) else { throw result.fault(.unknownResult) }
      self.result = expected
    } catch { throw error.inTest(id) }
  }

  /// Reads the title and the expected result of an example, which is valid unless it has `fail`.
  init(example node: VectorNode, id: UInt64) throws(VectorFault) {
    self.node = node
    self.id = id
    comment = try node.optional("title")?.text() ?? ""
    result = try node.optional("fail")?.flag() ?? false ? .invalid : .valid
  }

  /// Reads the number and the expected result of a test of NIST's, which is valid unless `testPassed` is false.
  init(keyDerivation node: VectorNode) throws(VectorFault) {
    self.node = node
    id = try node.member("tcId").number()
    comment = ""
    do throws(VectorFault) { result = try node.optional("testPassed")?.flag() ?? true ? .valid : .invalid } catch {
      throw error.inTest(id)
    }
  }

  /// Reads the bytes of a required member.
  func bytes(_ name: String) throws(VectorFault) -> [UInt8] {
    try node.member(name).bytes()
  }
}

/// The expected result of a test. Source: C2SP/wycheproof, `doc/formats.md`.
package enum ExpectedResult: String, Sendable {
  /// The input must be accepted, with the outputs that the test names.
  case valid
  /// The input must be refused.
  case invalid
  /// The input may be accepted or refused. If it is accepted, the outputs must be those that the test names.
  case acceptable
}

/// A JSON value with its file and location, which a fault reports.
struct VectorNode {
  let value: JSONValue
  let file: String
  let location: String

  /// Creates a fault at this location.
  func fault(_ kind: VectorFault.Kind) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind)
  }

  /// Returns the member with a name; nil if there is none.
  func optional(_ name: String) -> VectorNode? {
    guard let member = value[name] else { return nil }
    return VectorNode(value: member, file: file, location: location.isEmpty ? name : "\(location).\(name)")
  }

  /// Returns the required member with a name.
  func member(_ name: String) throws(VectorFault) -> VectorNode {
    guard value.members != nil else { throw fault(.wrongType) }
    guard let member = optional(name) else {
      throw VectorFault(file: file, location: location.isEmpty ? name : "\(location).\(name)", kind: .missing)
    }
    return member
  }

  /// Returns the elements of an array.
  func elements() throws(VectorFault) -> [VectorNode] {
    guard let elements = value.elements else { throw fault(.wrongType) }
    return elements.enumerated().map { VectorNode(value: $1, file: file, location: "\(location)[\($0)]") }
  }

  /// Returns the text of a string.
  func text() throws(VectorFault) -> String {
    guard let text = value.text else { throw fault(.wrongType) }
    return text
  }

  /// Returns an integer from 0 to 2^53 - 1.
  func number() throws(VectorFault) -> UInt64 {
    guard let number = value.number else { throw fault(.wrongType) }
    return number
  }

  /// Returns a Boolean.
  func flag() throws(VectorFault) -> Bool {
    guard let flag = value.flag else { throw fault(.wrongType) }
    return flag
  }

  /// Decodes a string of hexadecimal digits.
  func bytes() throws(VectorFault) -> [UInt8] {
    guard let bytes = hexadecimalBytes(try text()) else { throw fault(.notHexadecimal) }
    return bytes
  }

  /// Decodes a string of hexadecimal digits into exactly `count` bytes.
  func fixed<Kind, let count: Int>() throws(VectorFault) -> TypedBytes<Kind, count> {
    let bytes = try bytes()
    guard let fixed = TypedBytes<Kind, count>(bytes.span) else {
      throw fault(.wrongByteCount(expected: count, found: bytes.count))
    }
    return fixed
  }

  /// Whether the value is null.
  var isNull: Bool { value == .null }
}

/// Decodes hexadecimal digits of either case; nil unless there is an even number of digits and nothing else.
func hexadecimalBytes(_ text: String) -> [UInt8]? {
  let digits = text.utf8
  guard digits.count.isMultiple(of: 2) else { return nil }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(digits.count / 2)
  var high: UInt8?
  for digit in digits {
    guard let value = hexadecimalValue(digit) else { return nil }
    if let first = high {
      bytes.append(first << 4 | value)
      high = nil
    } else {
      high = value
    }
  }
  return bytes
}
