import HoldfastVectors
import Testing

/// Malformed files are reported with the place of the fault; they neither fail nor are skipped.
@Suite struct FrameTests {
  private let test = #"{"tcId":1,"comment":"","flags":[],"key":"00","msg":"","tag":"00","result":"invalid"}"#

  private func file(
    algorithm: String = #""algorithm":"HMACSHA256","#, schema: String = #""schema":"mac_test_schema_v1.json","#,
    count: String = "1", type: String = "MacTest", tests: String
  ) -> String {
    """
    {\(algorithm)\(schema)"numberOfTests":\(count),"header":[],"notes":{},"newer":{"number":-1.5e3},"testGroups":[
    {"type":"\(type)","source":{"name":"test","version":"1"},"keySize":256,"tagSize":128,"newer":1,"tests":[\(tests)]}]}
    """
  }

  @Test func `a well-formed file passes, and newer members are ignored`() throws {
    #expect(try replay(file(tests: test)).summary == "1 passed, 0 failed, 0 skipped")
  }

  @Test(arguments: ["", "nothing", "[]", "{}", "{\"schema\":1}", "{\"schema\":\"a\",\"schema\":\"a\"}", "\u{feff}{}"])
  func `what is not a vector file at all is malformed`(text: String) {
    #expect(fault(in: text) != nil)
  }

  @Test func `what is not JSON is told apart from what lacks a member`() {
    #expect(fault(in: "{")?.kind == .notJSON)
    #expect(fault(in: "[]")?.kind == .wrongType)
    #expect(fault(in: "{}") == VectorFault(file: "test.json", location: "schema", kind: .missing))
  }

  @Test func `a wrong number of tests is malformed`() {
    #expect(fault(in: file(count: "0", tests: test))?.kind == .wrongNumberOfTests(stated: 0, found: 1))
    #expect(fault(in: file(count: "2", tests: test))?.kind == .wrongNumberOfTests(stated: 2, found: 1))
    #expect(fault(in: file(count: "\"1\"", tests: test))?.kind == .wrongType)
    #expect(fault(in: file(count: "1.0", tests: test))?.kind == .wrongType)
    let without = file(tests: test).split(separator: "\"numberOfTests\":1,").joined()
    #expect(fault(in: without) == VectorFault(file: "test.json", location: "numberOfTests", kind: .missing))
  }

  @Test func `a file without tests is no success`() {
    #expect(fault(in: file(count: "0", tests: ""))?.kind == .noTests)
    #expect(fault(in: #"{"schema":"mac_test_schema_v1.json","numberOfTests":0,"testGroups":[]}"#)?.kind == .noTests)
  }

  @Test(arguments: ["x_schema_v1.json", "mac_test", "", "schema.json", "mac_test_schema", "Mac_test_schema_v1.json"])
  func `a schema that neither project has is malformed`(name: String) {
    let found = fault(in: file(schema: "\"schema\":\"\(name)\",", tests: test))
    #expect((found?.kind == .unknownSchema) == (name != "mac_test_schema"))
  }

  @Test func `a malformed test is named, and the tests and groups around it are replayed`() throws {
    let bad = test.replacing("\"tcId\":1", with: "\"tcId\":2").replacing(#""key":"00""#, with: #""key":"0""#)
    let text = file(
      count: "3", tests: [test, bad, test.replacing("\"tcId\":1", with: "\"tcId\":3")].joined(separator: ","))
    let report = try VectorFile(parsing: Array(text.utf8), name: "test.json").replay()
    #expect(report.summary == "2 passed, 1 failed, 0 skipped")
    #expect(report.faults.map(\.testIDs) == [[2]])
    #expect(report.faults.map(\.location) == ["testGroups[0].tests[1].key"])
  }

  @Test(
    arguments: [
      (#""result":"invalid""#, #""result":"maybe""#, "result", [2]), (#""result":"invalid""#, #""x":1"#, "result", [2]),
      (#""tcId":2"#, #""x":2"#, "tcId", []), (#""tcId":2"#, #""tcId":"2""#, "tcId", []),
      (#""comment":"""#, #""comment":1"#, "comment", [2]), (#""flags":[]"#, #""flags":[1]"#, "flags[0]", [2]),
    ] as [(String, String, String, [UInt64])])
  func `a test whose frame is malformed leaves out that test only`(
    text: String, bad: String, member: String, ids: [UInt64]
  ) throws {
    let tests = (1...3).map { test.replacing("\"tcId\":1", with: "\"tcId\":\($0)") }
    let spoiled = [tests[0], tests[1].replacing(text, with: bad), tests[2]].joined(separator: ",")
    let report = try report(on: file(count: "3", tests: spoiled))
    #expect(report.summary == "2 passed, 1 failed, 0 skipped")
    #expect(report.faults.map(\.location) == ["testGroups[0].tests[1].\(member)"])
    #expect(report.faults.map(\.testIDs) == [ids])
  }

  @Test(
    arguments: [
      (#""tagSize":128"#, #""tagSize":"many""#, "tagSize"), (#""type":"MacTest""#, #""type":1"#, "type"),
      (#""type":"MacTest","#, "", "type"),
    ])
  func `a fault in what a group shares names its tests, and the other group is replayed`(
    text: String, bad: String, member: String
  ) throws {
    let group = #"{"type":"MacTest","tagSize":128,"tests":["#
    let ids = [1, 2, 4].map { test.replacing("\"tcId\":1", with: "\"tcId\":\($0)") }.joined(separator: ",")
    let more = test.replacing("\"tcId\":1", with: "\"tcId\":9")
    let report = try report(
      on: file(count: "4", tests: "\(ids)]},\(group)\(more)").replacing(
        first: text, with: bad))
    #expect(report.summary == "1 passed, 3 failed, 0 skipped")
    #expect(report.faults.map(\.location) == ["testGroups[0].\(member)"])
    #expect(report.faults.map(\.testIDs) == [[1, 2, 4]])
    #expect(report.faults.map(\.testIDText) == ["1 to 2, 4"])
  }

  @Test func `a wrong number of tests is reported, and the tests are replayed`() throws {
    let report = try report(on: file(count: "3", tests: test))
    #expect(report.summary == "1 passed, 1 failed, 0 skipped")
    #expect(report.faults.map(\.kind) == [.wrongNumberOfTests(stated: 3, found: 1)])
  }

  @Test func `of two tests with one number, the second is left out`() throws {
    let report = try report(on: file(count: "2", tests: "\(test),\(test)"))
    #expect(report.summary == "1 passed, 1 failed, 0 skipped")
  }

  @Test func `many numbers of tests are told in short`() {
    let ids = (0..<20).map { UInt64(3 * $0) } + [100, 101]
    let fault = VectorFault(file: "", location: "", kind: .missing, testIDs: ids)
    #expect(fault.testIDText == "0, 3, 6, 9, 12, 15, 18, 21 and 14 others")
  }

  private func report(on text: String) throws(VectorFault) -> Report {
    try VectorFile(parsing: Array(text.utf8), name: "test.json").replay()
  }

  @Test func `a test number that occurs twice is malformed`() {
    let found = fault(in: file(count: "2", tests: "\(test),\(test)"))
    #expect(
      found
        == VectorFault(file: "test.json", location: "testGroups[0].tests[1]", kind: .duplicateTestID(1), testIDs: [1]))
  }

  @Test(arguments: ["Valid", "", "accepted"])
  func `a result that is none of the three is malformed`(result: String) {
    let found = fault(in: file(tests: test.replacing("invalid", with: result)))
    #expect(found?.kind == .unknownResult)
    #expect(found?.location == "testGroups[0].tests[0].result")
  }

  @Test(arguments: ["0", "0g", "zz", "+1", "0x00", " 00", "00 "])
  func `what is not hexadecimal is malformed`(text: String) {
    let found = fault(in: file(tests: test.replacing(#""tag":"00""#, with: "\"tag\":\"\(text)\"")))
    #expect(
      found
        == VectorFault(file: "test.json", location: "testGroups[0].tests[0].tag", kind: .notHexadecimal, testIDs: [1]))
  }

  @Test(arguments: ["tcId", "result", "key", "msg", "tag"])
  func `a test that lacks what its type needs is malformed`(name: String) {
    let found = fault(in: file(tests: test.replacing("\"\(name)\":", with: "\"other\":")))
    #expect(
      found
        == VectorFault(
          file: "test.json", location: "testGroups[0].tests[0].\(name)", kind: .missing,
          testIDs: name == "tcId" ? [] : [1]))
  }

  @Test func `a group or file that lacks what its type needs is malformed`() {
    #expect(fault(in: file(tests: test).replacing("tagSize", with: "other"))?.location == "testGroups[0].tagSize")
    #expect(fault(in: file(tests: test).replacing("\"type\"", with: "\"other\""))?.location == "testGroups[0].type")
    #expect(fault(in: file(tests: test).replacing("\"tests\"", with: "\"other\""))?.location == "testGroups[0].tests")
    #expect(fault(in: file(algorithm: "", tests: test))?.location == "algorithm")
    #expect(fault(in: file(schema: "", tests: test))?.location == "schema")
  }

  @Test func `a type that nobody knows is skipped in another's file and malformed in one of Holdfast's`() throws {
    let report = try replay(file(type: "FutureTest", tests: test))
    #expect(report.summary == "0 passed, 0 failed, 1 skipped")
    #expect(report.skips.map { $0.reason } == ["type FutureTest is not replayed"])
    for name in ["measurement", "proof", "measurement_token", "session"] {
      let found = fault(
        in: file(schema: "\"schema\":\"\(name)_schema_v2.json\",", type: "FutureTest", tests: test))
      #expect(found == VectorFault(file: "test.json", location: "testGroups[0].type", kind: .unknownType, testIDs: [1]))
    }
  }
}

extension String {
  fileprivate func replacing(first text: String, with other: String) -> String {
    let parts = split(separator: text, maxSplits: 1, omittingEmptySubsequences: false)
    return parts.joined(separator: other)
  }

  func replacing(_ text: String, with other: String) -> String {
    split(separator: text, omittingEmptySubsequences: false).joined(separator: other)
  }
}
