import FuzzTargets
import Testing

@Suite("Corpora of the fuzzer")
struct CorpusTests {
  @Test(arguments: FuzzTarget.all.map(\.name)) func `a reader takes or refuses each input that was kept`(
    _ name: String
  ) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    for (file, bytes) in try Corpus.inputs(of: name) {
      do { try target.run(bytes) } catch { Issue.record("\(name)/\(file): \(error)") }
    }
  }

  @Test func `each target has a corpus, and each corpus a target`() throws {
    #expect(try Corpus.names() == FuzzTarget.all.map(\.name).sorted())
  }

  @Test func `each declaration whose lines are not counted exists, in a file of a reader or of the core`() throws {
    let readers = Set(FuzzTarget.all.flatMap(\.sources))
    for (file, declarations) in try Corpus.notCounted() {
      #expect(readers.contains(file) || file.hasPrefix("HoldfastCore/"), "\(file)")
      let text = try Corpus.source(file)
      for declaration in declarations.keys { #expect(text.contains(declaration), "\(file): \(declaration)") }
    }
  }

  @Test func `each file of a reader exists`() throws {
    for file in FuzzTarget.all.flatMap(\.sources) { #expect(throws: Never.self) { try Corpus.source(file) } }
  }

  @Test func `a rule that does not hold is reported, and a refusal is not`() throws {
    let target = FuzzTarget("example", []) { bytes in
      guard bytes.isEmpty else { throw Violation(description: "not empty") }
      throw CancellationError()
    }
    #expect(throws: Violation.self) { try target.run([1]) }
    try target.run([])
  }
}
