import HoldfastAuthenticator
import HoldfastCore
import Testing

struct BareSecretTests {
  private func parameters(user: String = "alice") -> ImportParameters {
    ImportParameters(account: .init(issuer: "Example", user: user, method: .hotp(.sha1, .six), nextCounter: 7))
  }

  @Test(
    "a secret alone is read in each format",
    arguments: [
      ("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", CredentialFormat.base32),
      ("gezd gnbv gy3t qojq gezd gnbv gy3t qojq\n", .base32),
      ("3132333435363738393031323334353637383930", .hex), ("3132333435363738393031323334353637383930\r\n", .hex),
      ("12345678901234567890", .raw),
    ])
  func reads(text: String, format: CredentialFormat) throws {
    let credential = try #require(try read(text, format, parameters()).first)
    #expect(credential.secretArray == Array("12345678901234567890".utf8))
    #expect(credential.issuer == "Example" && credential.user == "alice" && credential.nextCounter == 7)
    #expect(credential.method == .hotp(.sha1, .six))
  }

  @Test("a newline at the end of a raw secret is one of its bytes")
  func rawNewline() throws {
    let credential = try #require(try read("1234\n", .raw, parameters()).first)
    #expect(credential.secretArray == Array("1234\n".utf8))
  }

  @Test(
    "what is not a secret is refused",
    arguments: [
      ("", CredentialFormat.base32), ("\n", .base32), ("A", .base32), ("GEZDGNB1", .base32), ("GEZD\n\n", .base32),
      ("MZ======\nMZ======", .base32), ("", .hex), ("\n", .hex), ("313", .hex), ("3g", .hex), ("0x31", .hex),
      ("31 32", .hex), ("\n31", .hex), ("", .raw),
    ])
  func refuses(text: String, format: CredentialFormat) {
    #expect(fault(text, format, parameters()) == .invalidSecret)
  }

  @Test("a secret has at most 128 bytes")
  func longest() throws {
    #expect(try read(String(repeating: "ab", count: 128), .hex, parameters()).count == 1)
    #expect(fault(String(repeating: "ab", count: 129), .hex, parameters()) == .secretTooLong)
    #expect(fault(String(repeating: "a", count: 129), .raw, parameters()) == .secretTooLong)
    #expect(fault(String(repeating: "A", count: 208), .base32, parameters()) == .secretTooLong)
  }

  @Test("a secret without an account, or with an impossible name, is refused")
  func account() {
    #expect(fault("31", .hex) == .accountNeeded)
    #expect(fault("31", .hex, parameters(user: "")) == .invalidName)
    #expect(fault("31", .hex, parameters(user: "a\u{7}")) == .invalidName)
    #expect(fault("31", .hex, parameters(user: "a\u{202e}b")) == .invalidName)
    #expect(fault("31", .hex, parameters(user: "a\u{2028}b")) == .invalidName)
    #expect(fault("31", .hex, parameters(user: String(repeating: "a", count: 33))) == .userTooLong)
    #expect(fault("31", .hex, parameters(user: String(repeating: "é", count: 17))) == .userTooLong)
    #expect(fault("31", .hex, parameters(user: String(repeating: "é", count: 16))) == nil)
  }

  @Test("a counter has at most 53 bits")
  func counter() {
    for (counter, expected) in [(1 << 53 - 1, nil), (1 << 53, .invalidCounter)] as [(UInt64, ImportFault?)] {
      let account = ImportParameters.Account(user: "alice", method: .hotp(.sha1, .six), nextCounter: counter)
      #expect(fault("31", .hex, ImportParameters(account: account)) == expected)
    }
  }

  @Test(
    "a secret below 128 bits, or below the hash's output, is called short",
    arguments: [
      (OATHHash.sha1, 15, true), (.sha1, 19, true), (.sha1, 20, false), (.sha256, 31, true), (.sha256, 32, false),
      (.sha512, 63, true), (.sha512, 64, false),
    ])
  func short(hash: OATHHash, count: Int, isShort: Bool) {
    let secret = [UInt8](repeating: 1, count: count).secret
    #expect(Credential(user: "a", method: .hotp(hash, .six), secret: secret).isShort == isShort)
  }
}
