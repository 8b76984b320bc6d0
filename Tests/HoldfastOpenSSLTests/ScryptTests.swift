import HoldfastOpenSSL
import TestSupport
import Testing

@Suite struct ScryptTests {
  private func derive(_ password: String, _ salt: String, _ cost: ScryptCost?) throws -> String {
    var output = [UInt8](repeating: 0, count: 64)
    var span = output.mutableSpan
    try Scrypt.derive(
      password: Array(password.utf8).span, salt: Array(salt.utf8).span, cost: #require(cost), into: &span)
    return hex(output)
  }

  @Test func `scrypt gives the answers of RFC 7914 section 12`() throws {
    let first = try derive("", "", ScryptCost(logarithm: 4, blockSize: 1, parallelization: 1))
    #expect(
      first == "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
        + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906")
    let third = try derive(
      "pleaseletmein", "SodiumChloride", ScryptCost(logarithm: 14, blockSize: 8, parallelization: 1))
    #expect(
      third == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887")
  }

  @Test func `a cost beyond its bounds is none`() {
    #expect(ScryptCost(logarithm: 0, blockSize: 8, parallelization: 1) == nil)
    #expect(ScryptCost(logarithm: 21, blockSize: 1, parallelization: 1) == nil)
    #expect(ScryptCost(logarithm: 19, blockSize: 8, parallelization: 1) == nil)
    #expect(ScryptCost(logarithm: 15, blockSize: 9, parallelization: 1) == nil)
    #expect(ScryptCost(logarithm: 15, blockSize: 8, parallelization: 5) == nil)
    #expect(ScryptCost(logarithm: 18, blockSize: 8, parallelization: 1)?.memoryByteCount == 1 << 28)
    #expect(ScryptCost.interactive.memoryByteCount == 32 << 20)
  }

  @Test func `the largest cost that is allowed can be paid`() throws {
    let cost = ScryptCost.archive
    #expect(try derive("password", "salt", cost) != derive("Password", "salt", cost))
  }
}
