import FuzzTargets
import Testing

@Suite("Corpora of the fuzzer")
struct CorpusTests {
  @Test(arguments: FuzzTarget.all.map(\.name)) func `the same becomes of each input that was kept as before`(
    _ name: String
  ) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    let (inputs, verdicts) = (try Corpus.inputs(of: name), try Corpus.verdicts(of: name))
    for (file, bytes) in inputs {
      let place = Comment(rawValue: "\(name)/\(file); if that is meant, Tests/Fuzz/fuzz.py verdicts \(name) keeps it")
      do { #expect(try target.verdict(on: bytes) == verdicts[file], place) } catch {
        Issue.record("\(name)/\(file): \(error)")
      }
    }
    #expect(Set(verdicts.keys) == Set(inputs.map(\.file)), "verdicts on other inputs")
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
    #expect(throws: Violation.self) { try target.verdict(on: [1]) }
    try target.run([])
    #expect(try target.verdict(on: []).hasPrefix("-"))
  }

  @Test func `variants of an input are of one length more or less, or a beginning of it, and all differ`() {
    let input = Array("abcdef".utf8)
    let all = variants(of: input, count: 1000)
    #expect(all.count == 8 * input.count)
    #expect(all.allSatisfy { $0.count <= input.count + 1 && $0 != input })
    #expect(all.filter { $0.count < input.count && input.starts(with: $0) }.count >= input.count)
    #expect(variants(of: input, count: 20) == variants(of: input, count: 20))
    #expect(variants(of: input, count: 20).count == 20)
    #expect(variants(of: [], count: 20).allSatisfy { $0.count == 1 })
  }

  @Test func `a verdict on variants depends on what becomes of one of them`() throws {
    let input = Array("abcdef".utf8)
    let target = { (refused: [UInt8]) in
      FuzzTarget("example", []) { bytes in if bytes == refused { throw CancellationError() } }
    }
    let verdicts = try ["", "abcde", "abcdeg", "bacdef"].map { text in
      try target(Array(text.utf8)).verdictOnVariants(of: input)
    }
    #expect(Set(verdicts).count == 4)
  }

  @Test func `a verdict depends on what was taken, and on what was read`() throws {
    let verdicts = try ["", "a", "b", "aa"].map { text in
      try FuzzTarget("example", []) { bytes in
        attempt { guard !bytes.isEmpty else { throw CancellationError() } }
        note(bytes)
      }.verdict(on: Array(text.utf8))
    }
    #expect(Set(verdicts).count == 4)
    #expect(verdicts.allSatisfy { $0.hasPrefix("+") && $0.count == 9 })
  }
}
