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
    #expect(all.count == 9 * input.count)
    #expect(all.allSatisfy { $0.count <= input.count + 1 && $0 != input })
    #expect(all.filter { $0.count < input.count && input.starts(with: $0) }.count >= input.count)
    #expect(variants(of: input, count: 20) == variants(of: input, count: 20))
    #expect(variants(of: input, count: 20).count == 20)
    #expect(variants(of: [], count: 20).allSatisfy { $0.count == 1 })
  }

  @Test func `variants at limits have other numbers, words of other lengths, and lists with other counts`() {
    func all(_ text: String, limit: UInt64 = 0) -> Set<String> {
      let variants = edgeVariants(of: Array(text.utf8), limits: usualLimits + [limit], count: 100_000, byteLimit: 64)
      return Set(variants.map { String(decoding: $0, as: UTF8.self) })
    }
    let variants = all(#"{"minute":07,"host":"a.example","of":[11]}"#, limit: 15)
    for (part, others) in [
      ("07", ["00", "59", "60", "61", "18446744073709551615"]), ("a.example", ["a", "a.examplea.exam", "a.examplee"]),
      ("[11]", ["[]", "[11,12]", "[11,12,13]"]),
    ] {
      for other in others {
        let text = #"{"minute":07,"host":"a.example","of":[11]}"#
        #expect(variants.contains(text.replacing(part, with: other)), "\(other)")
      }
    }
    #expect(all("a&b").isSuperset(of: ["a&b&c&d", "a", "b"]))
    // The digits of a key are no numbers.
    let key = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    #expect(all(key).allSatisfy { (key + key).hasPrefix($0) })
    // A byte string with an integer in it, an integer, an array of one element, and a map of one pair.
    let input: [UInt8] = [0x42, 0x18, 0x40, 0x05, 0x81, 0x07, 0xa1, 0x61, 0x61, 0x07]
    let items = edgeVariants(of: input, limits: usualLimits, count: 10_000, byteLimit: 64)
    for (range, others) in [
      (0..<3, [[0x43, 0x18, 0x40, 0x18], [0x41, 0x00], [0x43, 0x19, 0x01, 0x00]]), (3..<4, [[0x18, 0x18]]),
      (4..<6, [[0x80], [0x82, 0x07, 0x08]]), (6..<10, [[0xa0], [0xa2, 0x61, 0x61, 0x07, 0x61, 0x62, 0x07]]),
    ] as [(Range<Int>, [[UInt8]])] {
      for other in others { #expect(items.contains(input[..<range.lowerBound] + other + input[range.upperBound...])) }
    }
    #expect(edgeVariants(of: [], limits: usualLimits, count: 9, byteLimit: 64).isEmpty)
    let wide = wideVariants(of: input, count: 100, byteLimit: 64)
    #expect(wide.contains([0x43, 0x19, 0x01, 0x40] + input[3...]))
    #expect(wide.contains(input[..<3] + [0x1a, 0x00, 0x01, 0x00, 0x05] + input[4...]))
    #expect(wideVariants(of: Array(#"{"a":7}"#.utf8), count: 9, byteLimit: 64).contains(Array(#"{"a":263}"#.utf8)))
  }

  @Test func `words have each character, values lie in arrays, and bytes of other formats have limits`() {
    let characters = Set(characterVariants(of: Array("a.bcd e".utf8), count: 10_000))
    for text in ["a.b/d e", "a.b d e", "a.bcd \0", "a.bzd e"] {
      #expect(characters.contains(Array(text.utf8)), "\(text)")
    }
    let scalars = characterVariants(of: Array("a.bcd e".utf8), limits: [0x1d159], count: 10_000)
    #expect(scalars.contains(Array("a.b\u{1d15a}d e".utf8)))
    #expect(characterVariants(of: [0x01, 0x02], count: 9).isEmpty)
    let ends = wordEndVariants(of: Array("a:bGlnaHQgd28=;".utf8), count: 10)
    #expect(
      Set(ends).isSuperset(of: ["a:bGlnaHQgd28A;", "a:bGlnaHQgd28AAAA;", "a:bGlnaHQgd2800;"].map { Array($0.utf8) }))
    let nested = edgeVariants(of: Array(#"{"a":7}"#.utf8), limits: [7], count: 10_000, byteLimit: 64)
    #expect(nested.contains(Array(#"{"a":[[[[[[[[7]]]]]]]]}"#.utf8)))
    let bytes = edgeVariants(of: [0x01, 0xff, 0x1c], limits: [100], count: 10_000, byteLimit: 64)
    #expect(Set(bytes).isSuperset(of: [[0x65, 0xff, 0x1c], [0x01, 0x63, 0x1c], [0x01, 0xff, 0x64]]))
  }

  @Test func `elements of long lists differ`() {
    func differ(_ list: [UInt8], headCount: Int, elementCount: Int) -> Bool {
      let variants = edgeVariants(of: list, limits: [600], count: 100_000, byteLimit: 8192)
      return variants.contains { variant in
        let starts = Array(stride(from: headCount, to: variant.count, by: elementCount))
        return starts.count == 600 && Set(starts.map { Array(variant[$0...].prefix(elementCount - 1)) }).count == 600
      }
    }
    #expect(differ(Array("[0000]".utf8), headCount: 1, elementCount: 5))
    #expect(differ([0x81, 0x45, 0x30, 0x30, 0x30, 0x30, 0x2e], headCount: 3, elementCount: 6))
  }

  @Test func `a choice of few numbers leaves no part out`() {
    for (count, total) in [(60, 100), (600, 1000)] {
      let chosen = spread(count, over: total).sorted()
      #expect(Set(chosen).count == count && zip(chosen, chosen.dropFirst()).allSatisfy { $1 - $0 <= total / 40 })
    }
  }

  @Test func `variants at limits are only of what is taken, and few if much is`() throws {
    let input = Array("a-b".utf8)
    var counts: [Int] = []
    for (isTaken, takenCount) in [(true, 1), (true, 1000), (false, 1)] {
      let count = Counter()
      _ = try FuzzTarget("example", []) { bytes in
        count.value += 1
        if !isTaken { throw CancellationError() }
      }.verdictOnVariants(of: input, takenCount: takenCount)
      counts.append(count.value)
    }
    #expect(counts[0] > counts[1] && counts[1] > counts[2])
  }

  @Test func `variants of the ends have one byte more, one less, or another one`() {
    let all = Set(endVariants(of: Array("ab".utf8)))
    #expect(all.isSuperset(of: ["a", "b", "a ", "ab\n", "0ab"].map { Array($0.utf8) }))
    #expect(endVariants(of: []).contains([0]))
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

/// Counts calls.
private final class Counter: @unchecked Sendable {
  var value = 0
}
