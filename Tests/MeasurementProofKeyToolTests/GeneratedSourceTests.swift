import Testing

@testable import MeasurementProofKeyTool

@Suite struct GeneratedSourceTests {
  let keys = "00112233445566778899aabbccddeeff\nf0e0d0c0b0a090807060504030201000\n"

  @Test func `the same keys give the same source`() throws {
    #expect(try source(keys) == source(keys))
    #expect(try source(keys) != source(keys.replacing("ff", with: "fe")))
  }

  @Test func `the shares of each byte make up the key, and no share alone is the key`() throws {
    let functions = try source(keys).split(separator: "private static func").dropFirst()
    #expect(functions.count == 2)
    for (function, expected) in zip(functions, try KeyFile(parsing: Array(keys.utf8)).keys) {
      let shares = assignments(String(function))
      #expect(shares.count == 16)
      #expect((0..<16).map { position in shares[position]!.reduce(0, ^) } == expected)
      for share in 0..<3 { #expect((0..<16).map { shares[$0]![share] } != expected) }
    }
  }

  @Test func `a key is nowhere in the source as text`() throws {
    #expect(try !source(keys).contains("00112233"))
    #expect(try !source(keys).contains("f0e0d0c0"))
  }

  private func source(_ keys: String) throws -> String {
    try GeneratedSource(KeyFile(parsing: Array(keys.utf8))).text
  }

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
