import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

struct HOTPTests {
  /// The secret of RFC 4226 appendix D.
  private let key = Array("12345678901234567890".utf8)

  /// RFC 4226 appendix D: what HMAC-SHA-1 gives for the counters 0 to 9, and the number that is taken from it.
  private static let table: [(hmac: String, number: UInt32, code: String)] = [
    ("cc93cf18508d94934c64b65d8ba7667fb7cde4b0", 1_284_755_224, "755224"),
    ("75a48a19d4cbe100644e8ac1397eea747a2d33ab", 1_094_287_082, "287082"),
    ("0bacb7fa082fef30782211938bc1c5e70416ff44", 137_359_152, "359152"),
    ("66c28227d03a2d5529262ff016a1e6ef76557ece", 1_726_969_429, "969429"),
    ("a904c900a64b35909874b33e61c5938a8e15ed1c", 1_640_338_314, "338314"),
    ("a37e783d7b7233c083d4f62926c7a25f238d0316", 868_254_676, "254676"),
    ("bc9cd28561042c83f219324d3c607256c03272ae", 1_918_287_922, "287922"),
    ("a4fb960c0bc06e1eabb804e5b397cdc4b45596fa", 82_162_583, "162583"),
    ("1b3c89f65e6c9e883012052823443f048b4332db", 673_399_871, "399871"),
    ("1637409809a679dc698207310c8c7fc07290d9e5", 645_520_489, "520489"),
  ]

  @Test("the table of RFC 4226 appendix D comes out, with every value on the way", arguments: 0..<10)
  func rfc4226(counter: Int) throws {
    let expected = Self.table[counter]
    #expect(try untruncated(UInt64(counter), .sha1) == expected.hmac)
    #expect(try code(UInt64(counter), .sha1, digits: 10) == padded(expected.number, 10))
    #expect(try code(UInt64(counter), .sha1, digits: 6) == expected.code)
  }

  @Test("fewer digits are the last of ten, zeros in front included", arguments: 4...10)
  func digits(_ digits: Int) throws {
    for (counter, row) in Self.table.enumerated() {
      #expect(try code(UInt64(counter), .sha1, digits: digits) == padded(row.number, digits))
    }
  }

  @Test("there are codes of 4 to 10 digits only", arguments: [Int.min, -1, 0, 1, 2, 3, 11, 12, Int.max])
  func noOtherDigits(_ digits: Int) {
    #expect(CodeLength(digits) == nil)
  }

  @Test("the whole HMAC is as long as its hash", arguments: OATHHash.allCases)
  func wholeHMAC(_ hash: OATHHash) throws {
    #expect(try untruncated(7, hash).count == 2 * hash.byteCount)
  }

  @Test("every offset selects the four bytes at it", arguments: OATHHash.allCases)
  func offsets(_ hash: OATHHash) throws {
    var seen: Set<Int> = []
    for counter in 0..<400 as Range<UInt64> {
      let whole = hex(try untruncated(counter, hash))
      let offset = Int(whole.last! & 0x0f)
      seen.insert(offset)
      let number = whole[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
      #expect(try code(counter, hash, digits: 10) == padded(number, 10))
    }
    #expect(seen == Set(0...15))
  }

  @Test(
    "keys of no bytes, of a block and of more than a block are taken as they are",
    arguments: [0, 1, 63, 64, 65, 127, 128, 129, 1024])
  func keyLengths(_ byteCount: Int) throws {
    let key = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 * 7 + 1) }
    for (hash, peer) in [(OATHHash.sha1, HMAC.sha1), (.sha256, .sha256), (.sha512, .sha512)] {
      var expected = [UInt8](repeating: 0, count: hash.byteCount)
      var expectedBytes = expected.mutableSpan
      try peer.authenticate([0, 0, 0, 0, 0, 0, 1, 2].span, key: key.span, into: &expectedBytes)
      var cryptography = OpenSSLCryptography()
      let whole = try HOTP.untruncated(counter: 258, key: key.span, hash: hash, using: &cryptography)
      #expect(hex(whole.bytes) == hex(expected.span))
    }
  }

  @Test("the highest counter is eight bytes of ones")
  func highestCounter() throws {
    #expect(try code(.max, .sha1, digits: 8) == "63094451")
  }

  private func code(_ counter: UInt64, _ hash: OATHHash, digits: Int) throws -> String {
    var cryptography = OpenSSLCryptography()
    let length = try #require(CodeLength(digits))
    return try HOTP.code(counter: counter, key: key.span, hash: hash, length: length, using: &cryptography).description
  }

  private func untruncated(_ counter: UInt64, _ hash: OATHHash) throws -> String {
    var cryptography = OpenSSLCryptography()
    let code = try HOTP.untruncated(counter: counter, key: key.span, hash: hash, using: &cryptography)
    return hex(code.bytes)
  }

  private func padded(_ number: UInt32, _ digits: Int) -> String {
    let text = String(repeating: "0", count: 10) + String(number)
    return String(text.suffix(digits))
  }
}
