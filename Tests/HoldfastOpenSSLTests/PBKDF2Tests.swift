import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

struct PBKDF2Tests {
  private func derive(
    _ hash: HMAC, _ passphrase: String, _ salt: String, _ iterationCount: Int, _ count: Int
  ) throws -> String {
    var output = [UInt8](repeating: 0, count: count)
    var bytes = output.mutableSpan
    try PBKDF2.derive(
      hash: hash, passphrase: Array(passphrase.utf8).span, salt: Array(salt.utf8).span, iterationCount: iterationCount,
      into: &bytes)
    return hex(output)
  }

  @Test("PBKDF2 with HMAC-SHA-1 gives the values of RFC 6070")
  func sha1() throws {
    #expect(try derive(.sha1, "password", "salt", 1, 20) == "0c60c80f961f0e71f3a9b524af6012062fe037a6")
    #expect(try derive(.sha1, "password", "salt", 4096, 20) == "4b007901b765489abead49d926f721d065a429c1")
    #expect(
      try derive(.sha1, "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 25)
        == "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038")
    #expect(try derive(.sha1, "pass\0word", "sa\0lt", 4096, 16) == "56fa6aa75548099dcc37d7f03425e0c3")
  }

  @Test("PBKDF2 with HMAC-SHA-256 gives the value of RFC 7914")
  func sha256() throws {
    #expect(
      try derive(.sha256, "passwd", "salt", 1, 64)
        == "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
        + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783")
  }

  @Test("no iterations, or no output, is refused; an empty passphrase is one")
  func refused() throws {
    #expect(throws: CryptographyFailure.self) { try derive(.sha1, "a", "b", 0, 16) }
    #expect(throws: CryptographyFailure.self) { try derive(.sha1, "a", "b", -1, 16) }
    #expect(throws: CryptographyFailure.self) { try derive(.sha1, "a", "b", 1, 0) }
    #expect(try derive(.sha1, "", "b", 1, 16) != derive(.sha1, "a", "b", 1, 16))
  }
}
