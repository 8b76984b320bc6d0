import HoldfastJSON

/// A file of test vectors in the shape of Wycheproof's, its frame checked: Holdfast's own or another's.
///
/// Source: `vectors/README.md`; C2SP/wycheproof, `doc/formats.md` and `schemas/`. Members that this does not know are ignored.
public struct VectorFile {
  /// The longest file that is read, in bytes.
  public static let maximumByteCount = 64 << 20

  /// The file's name, as the caller gave it.
  public let name: String
  /// How many tests it holds: at least one.
  public let testCount: Int
  let frame: VectorNode
  let groups: [VectorGroup]

  /// Reads a file and checks its frame: that it is JSON and says what it must, that `numberOfTests` is right, that no `tcId`
  /// occurs twice, and that each `result` is one of the three.
  ///
  /// - Parameters:
  ///   - bytes: the whole file.
  ///   - name: what to call it in faults and reports.
  /// - Throws: a fault that says where the file is malformed.
  public init(parsing bytes: [UInt8], name: String) throws(VectorFault) {
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
