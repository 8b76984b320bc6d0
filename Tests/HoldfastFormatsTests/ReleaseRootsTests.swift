import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import Testing

@Suite struct ReleaseRootsTests {
  let first = "00112233445566778899aabbccddeeff"
  let second = "FFEEDDCCBBAA99887766554433221100"

  @Test func `roots are read in order, between comments, blanks and empty lines`() throws {
    let roots = try parse("# ours\n\n  \(first) # now\r\n\t\(second)\n")
    #expect(roots.count == 2)
    let rising = (0..<16).map { UInt8($0 * 0x11) }
    #expect(bytes(roots.root(at: 0)) == rising)
    #expect(bytes(roots.root(at: 1)) == rising.reversed())
  }

  @Test(arguments: [
    "0011", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeeff0", "0011223344556677 8899aabbccddeeff",
    "0x112233445566778899aabbccddeeff", "gg112233445566778899aabbccddeeff", "０0112233445566778899aabbccddeeff",
  ])
  func `a line that is not 32 hexadecimal digits is refused by its number`(line: String) {
    #expect(throws: KeyFileFault.notAKey(line: 3)) { _ = try parse("\(first)\n# x\n\(line)\n") }
  }

  @Test func `a root that is there twice is refused, however it is written`() {
    #expect(throws: KeyFileFault.repeated(line: 2)) { _ = try parse("\(first)\n\(first.uppercased())") }
  }

  @Test(arguments: ["", "\n\n", "# nothing\n", "   \n\t\n"])
  func `a file without a root is refused`(text: String) {
    #expect(throws: KeyFileFault.noKey) { _ = try parse(text) }
  }

  @Test func `64 releases are taken, and not one more`() throws {
    let lines = (0..<65).map { "000000000000000000000000000000" + String(100 + $0).suffix(2) }
    let distinct = lines.enumerated().map { index, line in String(index / 10) + line.dropFirst() }
    #expect(try parse(distinct[..<64].joined(separator: "\n")).count == 64)
    #expect(throws: KeyFileFault.tooMany) { _ = try parse(distinct.joined(separator: "\n")) }
    #expect(throws: KeyFileFault.tooMany) { _ = try parse(String(repeating: "#", count: 65_537)) }
  }

  @Test func `the default root is the first half of a digest that everybody can compute, and says what it is`()
    throws
  {
    let roots = try ReleaseRoots.default()
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append("holdfast development measurement proof key")
    let digest: Digest = try hash.finish()
    #expect(roots.count == 1 && roots.isDefault)
    #expect(bytes(roots.root(at: 0)) == (0..<16).map { digest[$0] })
    #expect(try !parse(first).isDefault)
  }

  private func parse(_ text: String) throws(KeyFileFault) -> ReleaseRoots {
    try ReleaseRoots(parsing: text.utf8Span.span)
  }

  private func bytes(_ root: borrowing ReleaseRoot) -> [UInt8] {
    root.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }
}
