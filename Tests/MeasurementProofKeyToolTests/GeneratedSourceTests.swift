import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import Testing

import MeasurementProofKeyTool

@Suite struct GeneratedSourceTests {
  let roots = "00112233445566778899aabbccddeeff\nf0e0d0c0b0a090807060504030201000\n"

  @Test func `the same roots give the same source`() throws {
    #expect(try source(roots) == source(roots))
    #expect(try source(roots) != source(roots.replacing("ff", with: "fe")))
  }

  @Test func `the keys of a known root are the published ones`() throws {
    let root = (0..<16).map { UInt8($0) }
    let keys = try GeneratedSource.keys(of: ReleaseRoot(copying: root.span)!)
    #expect(digits(keys.proof) == "18c214520a5dc921129b5e524bfa60ba")
    #expect(digits(keys.evidence) == "6bc2e2b27ecc91a64dd7893e4ec11fb545d805e273c3dedcec7b69ec1a8a7744")
  }

  @Test func `the shares of each byte make up both keys, and no share is a key`() throws {
    let functions = try source(roots).split(separator: "private static func").dropFirst()
    let keys = try self.keys(roots)
    let expected = keys.map(\.proof) + keys.map(\.evidence)
    #expect(functions.count == 4)
    for (function, key) in zip(functions, expected) {
      let shares = assignments(String(function))
      #expect(shares.count == key.count)
      #expect(key.indices.map { position in shares[position]!.reduce(0, ^) } == key)
      for share in 0..<3 { #expect(key.indices.map { shares[$0]![share] } != key) }
    }
  }

  @Test func `neither a root nor a key is in the source as text`() throws {
    let text = try source(roots)
    #expect(!text.contains("00112233") && !text.contains("f0e0d0c0"))
    for keys in try keys(roots) {
      #expect(!text.contains(digits(keys.proof).prefix(8)) && !text.contains(digits(keys.evidence).prefix(8)))
    }
  }

  private func source(_ text: String) throws -> String {
    try GeneratedSource(ReleaseRoots(parsing: text.utf8Span.span)).text
  }

  private func keys(_ text: String) throws -> [(proof: [UInt8], evidence: [UInt8])] {
    let roots = try ReleaseRoots(parsing: text.utf8Span.span)
    return try (0..<roots.count).map { try GeneratedSource.keys(of: roots.root(at: $0)) }
  }

  private func digits(_ bytes: [UInt8]) -> String { hexadecimal(bytes.span) }

  /// Reads lines such as `key[3] = opaque(1) ^ opaque(2) ^ opaque(3)`.
  private func assignments(_ function: String) -> [Int: [UInt8]] {
    var shares: [Int: [UInt8]] = [:]
    for line in function.split(separator: "\n") where line.contains("key[") {
      let numbers = line.split { !$0.isNumber }.compactMap { Int($0) }
      shares[numbers[0]] = numbers[1...].map { UInt8($0) }
    }
    return shares
  }
}
