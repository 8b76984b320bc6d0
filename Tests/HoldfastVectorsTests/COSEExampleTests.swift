import HoldfastVectors
import Testing

/// Examples in the form of the COSE working group.
@Suite struct COSEExampleTests {
  // HMac-01 of the working group: HMAC with SHA-256 and the key in the file.
  private let message = "8443A10105A054546869732069732074686520636F6E74656E742E5820"
  private let tag = "A1A848D3471F9D61EE49018D244C824772F223AD4F935293F1789FC3A08D8C58"

  private func outcome(_ encoded: String, fail: String = "", algorithm: String = "HS256") throws -> String {
    let report = try replay(
      """
      {"title":"HMAC-01",\(fail)"input":{"plaintext":"This is the content.","mac0":{"protected":{"alg":"\(algorithm)"},
      "recipients":[{"key":{"kty":"oct","k":"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg"}}]}},
      "output":{"cbor":"\(encoded)"}}
      """)
    return report.skips.first?.reason ?? report.failures.first?.happened ?? "passed"
  }

  @Test func `a COSE_Mac0 is accepted with its tag and without`() throws {
    #expect(try outcome("D1" + message + tag) == "passed")
    #expect(try outcome(message + tag) == "passed")
    #expect(try outcome("D1" + message + tag, fail: "\"fail\":true,") == "accepted")
    #expect(try outcome("D1" + message + tag, algorithm: "AES-MAC-128/64") == "another alg of COSE")
  }

  @Test func `another tag, algorithm or MAC, and anything after the message, is refused`() throws {
    #expect(try outcome("D2" + message + tag) == "refused: CBOR")
    #expect(try outcome("D1" + message + tag + "00") == "refused: CBOR")
    #expect(try outcome("D1" + message.replacing("A10105", with: "A10106") + tag) == "refused: MAC of 32 bytes")
    #expect(try outcome("D1" + message.replacing("A10105", with: "A10118") + tag) == "refused: CBOR")
    #expect(try outcome("D1" + message.replacing("43A10105A0", with: "40A10105") + tag) == "refused: MAC")
    #expect(try outcome("D1" + message + tag.dropLast() + "9") == "refused: MAC")
    #expect(try outcome("D1" + message.dropLast(4) + "48" + tag.prefix(16)) == "refused: MAC of 8 bytes")
  }
}
