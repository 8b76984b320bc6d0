import Foundation
import HoldfastService
import Testing

@Suite struct OpenAPIDocumentTests {
  /// `make openapi` writes the file anew.
  @Test func `the file in docs describes the operations, parameters and answers that the service has`() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = try String(contentsOf: root.appending(path: "docs/openapi.yaml"), encoding: .utf8)
    let (known, made) = (file.split(separator: "\n"), OpenAPIDocument.yaml.split(separator: "\n"))
    for (line, (left, right)) in zip(known, made).enumerated() where left != right {
      Issue.record("line \(line + 1): \(left) in the file, \(right) in the service")
      return
    }
    #expect(known.count == made.count)
    #expect(file == OpenAPIDocument.yaml)
  }
}
