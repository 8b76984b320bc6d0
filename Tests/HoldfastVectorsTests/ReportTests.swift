import HoldfastVectors
import Testing

@Suite struct ReportTests {
  /// Three tags of the empty message under the empty key: right, wrong, and of a type that is not replayed.
  private func report(file: String) throws -> Report {
    let tag = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
    let text = """
      {"algorithm":"HMACSHA256","schema":"mac_test_schema_v1.json","numberOfTests":4,"testGroups":[
      {"type":"MacTest","tagSize":256,"tests":[
      {"tcId":1,"key":"","msg":"","tag":"\(tag)","result":"valid"},
      {"tcId":2,"comment":"too good","key":"","msg":"","tag":"\(tag)","result":"invalid"}]},
      {"type":"Other","tests":[{"tcId":3,"result":"valid"},{"tcId":4,"result":"invalid"}]}]}
      """
    return try VectorFile(parsing: Array(text.utf8), name: file).replay()
  }

  @Test func `a report counts, names each failure and groups what was skipped`() throws {
    let report = try report(file: "a.json")
    #expect(report.summary == "1 passed, 1 failed, 2 skipped")
    let failure = try #require(report.failures.first)
    #expect(failure.file == "a.json")
    #expect(failure.testID == 2)
    #expect(failure.comment == "too good")
    #expect(failure.expected == .invalid)
    #expect(failure.happened == "accepted")
    #expect(report.skips.map { $0.count } == [2])
    #expect(report.skips.map { $0.reason } == ["type Other is not replayed"])
  }

  @Test func `reports of several files add up, and keep the files apart`() throws {
    var total = Report()
    #expect(total.summary == "0 passed, 0 failed, 0 skipped")
    total.merge(try report(file: "a.json"))
    total.merge(try report(file: "b.json"))
    total.merge(try report(file: "b.json"))
    #expect(total.summary == "3 passed, 3 failed, 6 skipped")
    #expect(total.failures.map { $0.file } == ["a.json", "b.json", "b.json"])
    #expect(total.skips.map { $0.file } == ["a.json", "b.json"])
    #expect(total.skips.map { $0.count } == [2, 4])
  }
}
