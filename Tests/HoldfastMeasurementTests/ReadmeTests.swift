import Foundation
import Testing

/// Documents that show code or name other documents.
@Suite struct ReadmeTests {
  private let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  @Test func `the prover app in the document on measurement is the one that is compiled, in ten lines`() throws {
    let page = try String(contentsOf: root.appending(path: "docs/measurement.md"), encoding: .utf8)
    let source = try String(contentsOf: root.appending(path: "Tests/ReadmeProver/main.swift"), encoding: .utf8)
    #expect(page.contains("```swift\n\(source)```\n"))
    #expect(source.split(separator: "\n").count <= 10)
  }

  @Test func `every document that the README names is there`() throws {
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let names = readme.matches(of: /\]\(([A-Za-z][A-Za-z\/.-]*)\)/).map { String($0.1) }
    #expect(names.count >= 5)
    for name in names {
      #expect(FileManager.default.fileExists(atPath: root.appending(path: name).path), "\(name) is missing")
    }
  }
}
