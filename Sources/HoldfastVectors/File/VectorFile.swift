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
  /// The number of tests, at least one.
  package let testCount: Int
  let frame: VectorNode
  let groups: [VectorGroup]

  /// Reads a file and checks its frame: that it is JSON and has the required members, that `numberOfTests` is right,
  /// that no `tcId` occurs twice, and that each `result` is one of the three values.
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
    if root["schema"] == nil, let unframed = try Self.unframedGroups(frame) {
      groups = unframed
      testCount = unframed.reduce(0) { $0 + $1.tests.count }
      guard testCount > 0 else { throw frame.fault(.noTests) }
      try checkTestIDs()
      return
    }
    let schemaName = try frame.member("schema")
    guard let schema = VectorSchema(file: try schemaName.text()) else { throw schemaName.fault(.unknownSchema) }
    try Self.checkTextMembers(of: frame)
    var groups: [VectorGroup] = []
    for node in try frame.member("testGroups").elements() {
      groups.append(try VectorGroup(node, types: schema.ownTypes))
    }
    self.groups = groups
    testCount = groups.reduce(0) { $0 + $1.tests.count }
    try checkNumberOfTests()
    try checkTestIDs()
  }

  /// Returns the tests of a file in another form than Wycheproof's: an example of the COSE working group or of RFC 7520, two nested
  /// ones, a JSON Web Key, or a file of NIST's. Returns nil if the file has none of these forms.
  private static func unframedGroups(_ frame: VectorNode) throws(VectorFault) -> [VectorGroup]? {
    if frame.value["algorithm"]?.text == "KDA" {
      var groups: [VectorGroup] = []
      for node in try frame.member("testGroups").elements() { groups.append(try VectorGroup(keyDerivation: node)) }
      return groups
    }
    if frame.value["kty"] != nil { return [try VectorGroup(examples: [frame], type: "JWKExample")] }
    if let inner = frame.optional("sign"), let outer = frame.optional("encrypt") {
      return [try VectorGroup(examples: [inner, outer], type: "JOSEExample")]
    }
    guard frame.value["input"] != nil, let output = frame.value["output"] else { return nil }
    let isCOSE = output["cbor"] != nil || output.members == nil
    return [try VectorGroup(examples: [frame], type: isCOSE ? "COSEExample" : "JOSEExample")]
  }

  private func checkNumberOfTests() throws(VectorFault) {
    let member = try frame.member("numberOfTests")
    let stated = try member.number()
    guard stated == testCount else { throw member.fault(.wrongNumberOfTests(stated: stated, found: testCount)) }
    guard testCount > 0 else { throw member.fault(.noTests) }
  }

  private func checkTestIDs() throws(VectorFault) {
    var seen: Set<UInt64> = []
    for group in groups {
      for test in group.tests where !seen.insert(test.id).inserted {
        throw test.node.fault(.duplicateTestID(test.id))
      }
    }
  }

  /// Checks the types of the members that only inform a reader. They are optional, because not all Wycheproof files
  /// have them.
  private static func checkTextMembers(of frame: VectorNode) throws(VectorFault) {
    _ = try frame.optional("algorithm")?.text()
    for line in try frame.optional("header")?.elements() ?? [] { _ = try line.text() }
    if let notes = frame.optional("notes"), notes.value.members == nil { throw notes.fault(.wrongType) }
  }
}

/// A group of tests, with the members that they share.
struct VectorGroup {
  let type: String
  let node: VectorNode
  let tests: [VectorTest]

  /// Reads the frame of a group. Its type must be one of `types`, unless that is nil.
  init(_ node: VectorNode, types: [String]?) throws(VectorFault) {
    let type = try node.member("type")
    self.type = try type.text()
    if let types, !types.contains(self.type) { throw type.fault(.unknownType) }
    self.node = node
    var tests: [VectorTest] = []
    for test in try node.member("tests").elements() { tests.append(try VectorTest(test)) }
    self.tests = tests
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
  init(keyDerivation node: VectorNode) throws(VectorFault) {
    type = "KeyDerivationTest"
    self.node = node
    var tests: [VectorTest] = []
    for test in try node.member("tests").elements() { tests.append(try VectorTest(keyDerivation: test)) }
    self.tests = tests
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

/// A fault in a vector file: in the file as a whole, in a group, or in one test. The rest is replayed nevertheless.
package struct VectorFault: Error, Sendable, Equatable {
  /// The file's name, as the caller gave it.
  package let file: String
  /// The location in the file, such as `testGroups[1].tests[7].tag`; empty for the file as a whole.
  package let location: String
  /// The mistake at this location.
  package let kind: Kind
  /// The `tcId` of the test that the location is in; nil if it is in none.
  package let testID: UInt64?

  /// Creates a fault at a location in a file.
  package init(file: String, location: String, kind: Kind, testID: UInt64? = nil) {
    self.file = file
    self.location = location
    self.kind = kind
    self.testID = testID
  }

  /// Returns the same fault in the test with a `tcId`.
  func inTest(_ testID: UInt64) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind, testID: testID)
  }

  /// The mistakes in a file.
  package enum Kind: Sendable, Equatable {
    /// The file is not JSON or not UTF-8, or an object has a member twice.
    case notJSON
    /// The file is longer than ``VectorFile/maximumByteCount``.
    case tooLong
    /// A required member is missing.
    case missing
    /// A member has the wrong JSON type.
    case wrongType
    /// The text is not an even number of hexadecimal digits.
    case notHexadecimal
    /// The number of bytes is not the required one.
    case wrongByteCount(expected: Int, found: Int)
    /// The value has the right type but is not permitted.
    case wrongValue
    /// `numberOfTests` differs from the number of tests in all groups.
    case wrongNumberOfTests(stated: UInt64, found: Int)
    /// The file has no tests.
    case noTests
    /// Another test in the file has the same `tcId`.
    case duplicateTestID(UInt64)
    /// The `result` is not `valid`, `invalid` or `acceptable`.
    case unknownResult
    /// The schema is neither one of Holdfast nor one of Wycheproof.
    case unknownSchema
    /// The file uses one of Holdfast's schemas, which does not have the group's `type`.
    case unknownType
    /// The key does not match the private key or the key id next to it.
    case keysDiffer
  }
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
