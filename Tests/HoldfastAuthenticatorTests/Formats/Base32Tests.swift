import HoldfastAuthenticator
import Testing

struct Base32Tests {
  @Test(
    "the test vectors of RFC 4648 §10 are read, padded or not, and written",
    arguments: [
      ("", ""), ("f", "MY======"), ("fo", "MZXQ===="), ("foo", "MZXW6==="), ("foob", "MZXW6YQ="), ("fooba", "MZXW6YTB"),
      ("foobar", "MZXW6YTBOI======"),
    ])
  func rfc4648(bytes: String, padded: String) throws {
    let plain = String(padded.prefix { $0 != "=" })
    #expect(try decoded(padded) == Array(bytes.utf8))
    #expect(try decoded(plain) == Array(bytes.utf8))
    #expect(try decoded(plain.lowercased()) == Array(bytes.utf8))
    #expect(String(decoding: Base32.encode(Array(bytes.utf8).span), as: UTF8.self) == plain)
  }

  @Test("every byte in every place comes back")
  func everyByte() throws {
    for byte in UInt8.min...UInt8.max {
      for place in 0..<10 {
        var bytes = [UInt8](repeating: ~byte, count: 10)
        bytes[place] = byte
        let text = Base32.encode(bytes.span)
        #expect(try decoded(String(decoding: text, as: UTF8.self)) == bytes)
      }
    }
  }

  @Test(
    "groups may be set apart by one space or dash",
    arguments: ["MZXW 6YTB OI", "mzxw-6ytb-oi======", "M Z-X W-6YTBOI"])
  func groups(_ text: String) throws {
    #expect(try decoded(text) == Array("foobar".utf8))
  }

  @Test(
    "what is no character of the alphabet is refused",
    arguments: [
      "MZXW6YT0", "MZXW6YT1", "MZXW6YT8", "MZXW6YT9", "MZXW6YT/", "MZXW6YT@", "MZXW6YT[", "MZXW6YT`", "MZXW6YT{",
      "MZXW6Y\u{e9}", "MZXW6YT\n", "MZXW\t6YTB", "MZXW_6YTB", " MZXW6YTB", "MZXW6YTB ", "MZXW  6YTB", "MZXW--6YTB", "-",
      "MZXW6YQ =", "MZ=XW6YTB",
    ])
  func characters(_ text: String) {
    #expect(throws: Base32Fault.character) { try decoded(text) }
  }

  @Test("every byte that is not of the alphabet is refused")
  func everyOtherCharacter() {
    let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567 -=".utf8)
    for byte in UInt8.min...UInt8.max where !alphabet.contains(byte) {
      let text: [UInt8] = [0x4d, byte, 0x4d, 0x4d, 0x4d, 0x4d, 0x4d, 0x4d]
      #expect(throws: Base32Fault.character) { _ = try Base32.decode(text.span) }
    }
  }

  @Test("as many characters as no bytes have are refused", arguments: ["M", "MZX", "MZXW6Y", "MZXW6YTBO", "MZXW6Y=="])
  func lengths(_ text: String) {
    #expect(throws: Base32Fault.length) { try decoded(text) }
  }

  @Test(
    "padding that does not fill eight characters is refused",
    arguments: ["MY=", "MY=====", "MY=======", "MZXW6YTB=", "MZXW6YTB========", "=", "========", "MZXQ==="])
  func padding(_ text: String) {
    #expect(throws: Base32Fault.padding) { try decoded(text) }
  }

  @Test("bits behind the last byte are zero", arguments: ["MZ", "MZXR", "MZXW7", "MZXW6YR", "MZ======", "77"])
  func strayBits(_ text: String) {
    #expect(throws: Base32Fault.strayBits) { try decoded(text) }
  }

  @discardableResult
  private func decoded(_ text: String) throws -> [UInt8] {
    let secret = try Base32.decode(Array(text.utf8).span)
    return (0..<secret.count).map { secret.bytes[$0] }
  }
}
