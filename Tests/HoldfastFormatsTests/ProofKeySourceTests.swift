import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import Testing

@Suite struct ProofKeySourceTests {
  let roots = "00112233445566778899aabbccddeeff\nf0e0d0c0b0a090807060504030201000\n"

  @Test func `the same roots give the same source`() throws {
    #expect(try source(roots) == source(roots))
    #expect(try source(roots) != source(roots.replacing("ff", with: "fe")))
  }

  @Test func `the keys of a known root are the published ones`() throws {
    let root = (0..<16).map { UInt8($0) }
    let keys = try ReleaseKeys(of: ReleaseRoot(copying: root.span)!)
    #expect(digits(keys.proof) == "18c214520a5dc921129b5e524bfa60ba")
    #expect(digits(keys.evidence) == "6bc2e2b27ecc91a64dd7893e4ec11fb545d805e273c3dedcec7b69ec1a8a7744")
  }

  @Test(arguments: ["swift", "c"])
  func `the shares of each byte make up both keys, and no share is a key`(language: String) throws {
    let functions = try source(roots, language).split(separator: language == "c" ? "\nstatic void" : "private func")
    let expected = try keys(roots)
    let found = functions.map { assignments(String($0)) }.filter { !$0.isEmpty }
    #expect(found.count == 4)
    for (shares, key) in zip(found, expected) {
      #expect(shares.count == key.count)
      #expect(key.indices.map { position in shares[position]!.reduce(0, ^) } == key)
      for share in 0..<3 { #expect(key.indices.map { shares[$0]![share] } != key) }
    }
  }

  @Test(arguments: ["swift", "c"])
  func `neither a root nor a key is in the source as text`(language: String) throws {
    let text = try source(roots, language)
    #expect(!text.contains("00112233") && !text.contains("f0e0d0c0"))
    for key in try keys(roots) { #expect(!text.contains(hexadecimal(key.span).prefix(8))) }
  }

  private func source(_ text: String, _ language: String = "swift") throws -> String {
    let source = try ProofKeySource(ReleaseRoots(parsing: text.utf8Span.span))
    return language == "c" ? source.c : source.swift
  }

  /// The measurement proof keys of the roots, then the evidence keys.
  private func keys(_ text: String) throws -> [[UInt8]] {
    let roots = try ReleaseRoots(parsing: text.utf8Span.span)
    var (proofs, evidence): ([[UInt8]], [[UInt8]]) = ([], [])
    for index in 0..<roots.count {
      let keys = try ReleaseKeys(of: roots.root(at: index))
      proofs.append(copy(keys.proof))
      evidence.append(copy(keys.evidence))
    }
    return proofs + evidence
  }

  private func copy<let count: Int>(_ key: borrowing Secret<count>) -> [UInt8] {
    key.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  private func digits<let count: Int>(_ key: borrowing Secret<count>) -> String { key.withBytes { hexadecimal($0) } }

  /// Reads lines such as `key[3] = opaque(1) ^ opaque(2) ^ opaque(3)`.
  private func assignments(_ function: String) -> [Int: [UInt8]] {
    var shares: [Int: [UInt8]] = [:]
    for line in function.split(separator: "\n") where line.contains("] = ") {
      let numbers = line.split { !("0"..."9" ~= $0) }.compactMap { Int($0) }
      guard numbers.count >= 4 else { continue }
      shares[numbers[0]] = numbers.suffix(3).map { UInt8($0) }
    }
    return shares
  }
}
