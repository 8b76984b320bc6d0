import HoldfastVectors
import Testing

/// Examples in the form of RFC 7520's, computed by another library.
@Suite struct JOSEExampleTests {
  private let signed = "eyJhbGciOiJIUzI1NiJ9.SG9sZGZhc3Q.rM5tVTA9Kf_PuFX5hZmA4Q7GDqL1195Q20RCPcwZOW4"
  private let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
  private let encrypted =
    "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..AAAAAAAAAAAAAAAA.AbnrN__61fg.Q0E9AMvyaQU8Fq51W98qTQ"
  private let shortSecret = "AAECAwQFBgcICQoLDA0ODw"

  private func example(_ content: String, _ key: String, _ output: String) -> String {
    #"{"title":"","input":{\#(content),"key":{"kty":"oct","k":"\#(key)"}},"output":{\#(output)}}"#
  }

  private func outcome(_ text: String) throws -> String {
    let report = try replay(text)
    return report.skips.first?.reason ?? report.failures.first?.happened ?? "\(report.passed) passed"
  }

  @Test func `a JWS is verified with its key, and its payload is compared`() throws {
    #expect(try outcome(example(#""payload":"Holdfast""#, secret, #""compact":"\#(signed)""#)) == "1 passed")
    #expect(
      try outcome(example(#""payload":"Holdfas""#, secret, #""compact":"\#(signed)""#))
        == "accepted, but payload differs")
    #expect(
      try outcome(example(#""payload":"Holdfast""#, secret, #""compact":"\#(signed.dropLast())8""#)) == "refused: MAC")
    #expect(
      try outcome(example(#""payload":"Holdfast""#, shortSecret, #""compact":"\#(signed)""#))
        == "refused: key of 16 bytes")
  }

  @Test func `a JWE is opened with its key, and its plaintext is compared`() throws {
    #expect(try outcome(example(#""plaintext":"Holdfast""#, shortSecret, #""compact":"\#(encrypted)""#)) == "1 passed")
    #expect(
      try outcome(example(#""plaintext":"oldfast""#, shortSecret, #""compact":"\#(encrypted)""#))
        == "accepted, but plaintext differs")
    let changed = encrypted.replacing("AbnrN", with: "BbnrN")
    #expect(
      try outcome(example(#""plaintext":"Holdfast""#, shortSecret, #""compact":"\#(changed)""#))
        == "refused: it does not decrypt")
  }

  @Test func `what Holdfast does not read is skipped with its reason`() throws {
    let detached = signed.replacing("SG9sZGZhc3Q", with: "")
    #expect(
      try outcome(example(#""payload":"Holdfast""#, secret, #""compact":"\#(detached)""#)) == "detached content")
    #expect(try outcome(example(#""payload":"Holdfast""#, secret, #""json":{}"#)) == "no compact form")
    let rsa = encrypted.replacing("eyJhbGciOiJkaXIi", with: "eyJhbGciOiJSU0ExXzUi")
    #expect(try outcome(example(#""plaintext":"x""#, secret, #""compact":"\#(rsa)""#)) == "alg RSA1_5")
    #expect(
      try outcome(
        #"{"input":{"payload":"x","key":{"kty":"OKP","crv":"Ed25519","x":"AA"}},"output":{"compact":"a.b.c"}}"#)
        == "a key of type OKP")
    #expect(
      try outcome(#"{"input":{"plaintext":"x","pwd":"y"},"output":{"compact":"a.b.c.d.e"}}"#) == "a key of another form"
    )
  }

  @Test func `nested examples are two tests, and a file with a key is one`() throws {
    let inner = example(#""payload":"Holdfast""#, secret, #""compact":"\#(signed)""#)
    let outer = example(#""plaintext":"Holdfast""#, shortSecret, #""compact":"\#(encrypted)""#)
    #expect(try outcome(#"{"sign":\#(inner),"encrypt":\#(outer)}"#) == "2 passed")
    #expect(try outcome(#"{"kty":"oct","k":"\#(secret)"}"#) == "1 passed")
    #expect(try outcome(#"{"kty":"oct","k":"\#(secret)="}"#) == "refused: key is malformed")
  }
}
