import HoldfastCore
import HoldfastFormats

/// A file of test vectors in the shape of Wycheproof's, its frame checked: Holdfast's own or another's.
///
/// Source: `vectors/README.md`; C2SP/wycheproof, `doc/formats.md` and `schemas/`. Members that this does not know are ignored.
package struct VectorFile {
  /// The longest file that is read, in bytes.
  package static let maximumByteCount = 64 << 20

  /// The file's name, as the caller gave it.
  package let name: String
  /// How many tests it holds: at least one.
  package let testCount: Int
  let frame: VectorNode
  let groups: [VectorGroup]

  /// Reads a file and checks its frame: that it is JSON and says what it must, that `numberOfTests` is right, that no `tcId`
  /// occurs twice, and that each `result` is one of the three.
  ///
  /// - Parameters:
  ///   - bytes: the whole file.
  ///   - name: what to call it in faults and reports.
  /// - Throws: a fault that says where the file is malformed.
  package init(parsing bytes: [UInt8], name: String) throws(VectorFault) {
    let root: JSONValue
    do throws(JSONFault) {
      root = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount, otherNumbers: .asText)
    } catch {
      throw VectorFault(file: name, location: "", kind: error == .tooLong ? .tooLong : .notJSON)
    }
    self.name = name
    frame = VectorNode(value: root, file: name, location: "")
    let ownTypes = Self.types(ofSchema: try frame.member("schema").text())
    try Self.checkTextMembers(of: frame)
    var groups: [VectorGroup] = []
    for node in try frame.member("testGroups").elements() {
      groups.append(try VectorGroup(node, types: ownTypes))
    }
    self.groups = groups
    testCount = groups.reduce(0) { $0 + $1.tests.count }
    try checkNumberOfTests()
    try checkTestIDs()
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

  /// Members that only tell a reader something are of the right type where they are; Wycheproof's files do not all have them.
  private static func checkTextMembers(of frame: VectorNode) throws(VectorFault) {
    _ = try frame.optional("algorithm")?.text()
    for line in try frame.optional("header")?.elements() ?? [] { _ = try line.text() }
    if let notes = frame.optional("notes"), notes.value.members == nil { throw notes.fault(.wrongType) }
  }

  /// The group types of one of Holdfast's schemas, of any version; nil for another's schema.
  private static func types(ofSchema schema: String) -> [String]? {
    guard let end = schema.range(ofText: "_schema_v") else { return nil }
    switch schema[..<end] {
    case "measurement": return ["Measurement", "MeasurementConfiguration", "ReleaseKeys", "Evidence"]
    case "proof": return ["Proof"]
    case "measurement_token": return ["MeasurementTokenCOSE", "MeasurementTokenJOSE"]
    case "session": return ["SessionRound", "SessionM1", "SessionM2", "SessionM3", "SessionRequest", "SessionReply"]
    case "oath_hotp": return ["HOTP"]
    case "oath_totp": return ["TOTP"]
    case "oath_ocra": return ["OCRA", "OCRASuite"]
    default: return nil
    }
  }
}

extension String {
  /// Where `text` begins in this; nil when it does not occur.
  fileprivate func range(ofText text: String) -> Index? {
    indices.first { self[$0...].hasPrefix(text) }
  }
}

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
package enum ExpectedResult: String, Sendable {
  /// It must be accepted, with the outputs that the test names.
  case valid
  /// It must be refused.
  case invalid
  /// It may be either; what is accepted must still have the outputs that the test names.
  case acceptable
}

/// A JSON value that knows where in which file it stands, so that whatever is wrong with it can be found.
struct VectorNode {
  let value: JSONValue
  let file: String
  let location: String

  /// A fault at this place.
  func fault(_ kind: VectorFault.Kind) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind)
  }

  /// The member of that name; nil when there is none.
  func optional(_ name: String) -> VectorNode? {
    guard let member = value[name] else { return nil }
    return VectorNode(value: member, file: file, location: location.isEmpty ? name : "\(location).\(name)")
  }

  /// The member of that name, which must be there.
  func member(_ name: String) throws(VectorFault) -> VectorNode {
    guard value.members != nil else { throw fault(.wrongType) }
    guard let member = optional(name) else {
      throw VectorFault(file: file, location: location.isEmpty ? name : "\(location).\(name)", kind: .missing)
    }
    return member
  }

  /// The elements of an array.
  func elements() throws(VectorFault) -> [VectorNode] {
    guard let elements = value.elements else { throw fault(.wrongType) }
    return elements.enumerated().map { VectorNode(value: $1, file: file, location: "\(location)[\($0)]") }
  }

  /// The text of a string.
  func text() throws(VectorFault) -> String {
    guard let text = value.text else { throw fault(.wrongType) }
    return text
  }

  /// An integer from 0 to 2^53 - 1.
  func number() throws(VectorFault) -> UInt64 {
    guard let number = value.number else { throw fault(.wrongType) }
    return number
  }

  /// True or false.
  func flag() throws(VectorFault) -> Bool {
    guard let flag = value.flag else { throw fault(.wrongType) }
    return flag
  }

  /// The bytes of a string of hexadecimal digits.
  func bytes() throws(VectorFault) -> [UInt8] {
    guard let bytes = hexadecimalBytes(try text()) else { throw fault(.notHexadecimal) }
    return bytes
  }

  /// Exactly `count` bytes.
  func fixed<let count: Int>() throws(VectorFault) -> FixedBytes<count> {
    let bytes = try bytes()
    guard let fixed = FixedBytes<count>(bytes.span) else {
      throw fault(.wrongByteCount(expected: count, found: bytes.count))
    }
    return fixed
  }

  /// Whether this is null.
  var isNull: Bool { value == .null }
}

/// Why a file is not one of test vectors: it is malformed, and nothing in it was judged.
package struct VectorFault: Error, Sendable, Equatable {
  /// The file's name, as the caller gave it.
  package let file: String
  /// Where in the file, such as `testGroups[1].tests[7].tag`; empty for the file as a whole.
  package let location: String
  /// What is wrong there.
  package let kind: Kind

  /// A fault at a place of a file.
  package init(file: String, location: String, kind: Kind) {
    self.file = file
    self.location = location
    self.kind = kind
  }

  /// What can be wrong with a file.
  package enum Kind: Sendable, Equatable {
    /// Not JSON, not UTF-8, or an object names a member twice.
    case notJSON
    /// More bytes than ``VectorFile/maximumByteCount``.
    case tooLong
    /// A member that the file must have is not there.
    case missing
    /// A member of another JSON type than belongs there.
    case wrongType
    /// Text that is not an even number of hexadecimal digits.
    case notHexadecimal
    /// As many bytes as belong there, and no others.
    case wrongByteCount(expected: Int, found: Int)
    /// A value of the right type that cannot stand there.
    case wrongValue
    /// `numberOfTests` is not the number of tests in all groups.
    case wrongNumberOfTests(stated: UInt64, found: Int)
    /// There is nothing to replay.
    case noTests
    /// A `tcId` that another test of the file has too.
    case duplicateTestID(UInt64)
    /// A `result` other than `valid`, `invalid` and `acceptable`.
    case unknownResult
    /// A group's `type` that the file's schema, one of Holdfast's own, does not have.
    case unknownType
    /// A key that does not belong to the private key or the key id beside it.
    case keysDiffer
  }
}

/// The bytes of hexadecimal digits of either case; nil unless there are an even number of digits and nothing else.
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

private func hexadecimalValue(_ digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
  default: nil
  }
}
