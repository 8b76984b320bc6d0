import HoldfastOpenSSL
import Testing

@testable import MeasurementProofKeyTool

@Suite struct KeyFileTests {
  let first = "00112233445566778899aabbccddeeff"
  let second = "FFEEDDCCBBAA99887766554433221100"

  @Test func `keys are read in order, between comments, blanks and empty lines`() throws {
    let keys = try parse("# ours\n\n  \(first) # now\r\n\t\(second)\n").keys
    #expect(keys.map(\.count) == [16, 16])
    #expect(keys[0][1] == 0x11)
    #expect(keys[1][0] == 0xff)
  }

  @Test(arguments: [
    "0011", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeeff0", "0011223344556677 8899aabbccddeeff",
    "0x112233445566778899aabbccddeeff", "gg112233445566778899aabbccddeeff", "０0112233445566778899aabbccddeeff",
  ])
  func `a line that is not 32 hexadecimal digits is refused by its number`(line: String) {
    #expect(throws: KeyFileFault.notAKey(line: 3)) { _ = try parse("\(first)\n# x\n\(line)\n") }
  }

  @Test func `a key that is there twice is refused, however it is written`() {
    #expect(throws: KeyFileFault.repeated(line: 2)) { _ = try parse("\(first)\n\(first.uppercased())") }
  }

  @Test(arguments: ["", "\n\n", "# nothing\n", "   \n\t\n"])
  func `a file without a key is refused`(text: String) {
    #expect(throws: KeyFileFault.noKey) { _ = try parse(text) }
  }

  @Test func `the development key says that it is one`() throws {
    #expect(try KeyFile().isDevelopmentKey)
    #expect(try !parse(first).isDevelopmentKey)
  }

  private func parse(_ text: String) throws(KeyFileFault) -> KeyFile { try KeyFile(parsing: Array(text.utf8)) }
}
