import HoldfastVectors
import TestSupport
import Testing

/// Whatever files of Wycheproof are in the folder that HOLDFAST_WYCHEPROOF names.
@Suite(.enabled(if: wycheproofFolder != nil, "HOLDFAST_WYCHEPROOF names no folder"))
struct WycheproofFolderTests {
  @Test func `no file is malformed, no test of any fails, and some pass`() throws {
    let folder = try #require(wycheproofFolder)
    var total = Report()
    for name in try jsonFiles(in: folder) {
      let file = try VectorFile(parsing: readFile("\(folder)/\(name)"), name: name)
      let report = file.replay()
      #expect(report.failures == [], "\(name)")
      #expect(report.faults == [], "\(name)")
      #expect(report.passed + report.failed + report.skipped == file.testCount)
      total.merge(report)
    }
    #expect(total.passed > 0)
  }
}
