import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import Testing

struct CredentialTests {
  @Test("a credential keeps what it was given")
  func keeps() {
    let credential = Credential(
      issuer: "Example", user: "alice", method: .hotp(.sha1, .six), nextCounter: 7, secret: SecretBytes(zeros: 20))
    #expect(credential.issuer == "Example" && credential.user == "alice" && credential.nextCounter == 7)
    #expect(credential.secret.count == 20)
  }
}
