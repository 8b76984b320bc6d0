import HoldfastFormats
import HoldfastVectors
import TestSupport
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

  @Test func `a JWE with RSA-OAEP and SHA-384 or SHA-512, made by hand in Python, is opened`() throws {
    let fixtures = try JSONValue(
      parsing: readFile("\(vectorsFolder)/../Tests/HoldfastIssuerTests/Fixtures/jose.json"),
      byteLimit: VectorFile.maximumByteCount)
    let tokens = (fixtures["encrypted"]?.elements ?? []).filter { $0["maker"] == .string("cryptography") }
    #expect(tokens.compactMap { $0["alg"]?.text } == ["RSA-OAEP-384", "RSA-OAEP-512"])
    for token in tokens {
      let key = try #require(token["key"])
      func outcome(_ name: String) throws -> String {
        let key = key.changed { $0["alg"] = .string(name) }
        let input = JSONValue.object([("plaintext", token["plaintext"] ?? .null), ("key", key)])
        let output = JSONValue.object([("compact", token["token"] ?? .null)])
        return try self.outcome(
          String(decoding: JSONValue.object([("input", input), ("output", output)]).compact(), as: UTF8.self))
      }
      #expect(try outcome(token["alg"]?.text ?? "") == "1 passed")
      #expect(try outcome("RSA-OAEP-256") == "refused: key for another alg")
    }
  }

  @Test func `what Holdfast does not read is skipped with its reason`() throws {
    let detached = signed.replacing("SG9sZGZhc3Q", with: "")
    #expect(
      try outcome(example(#""payload":"Holdfast""#, secret, #""compact":"\#(detached)""#)) == "detached content")
    #expect(try outcome(example(#""payload":"Holdfast""#, secret, #""json":{}"#)) == "detached content")
    #expect(try outcome(example(#""payload":"Holdfast""#, secret, #""xml":{}"#)) == "no form of a message")
    let rsa = encrypted.replacing("eyJhbGciOiJkaXIi", with: "eyJhbGciOiJSU0ExXzUi")
    #expect(try outcome(example(#""plaintext":"x""#, secret, #""compact":"\#(rsa)""#)) == "alg RSA1_5")
    #expect(
      try outcome(
        #"{"input":{"payload":"x","key":{"kty":"OKP","crv":"Ed25519","x":"AA"}},"output":{"compact":"a.b.c"}}"#)
        == "a key of type OKP")
    #expect(
      try outcome(#"{"input":{"plaintext":"x","pwd":"y"},"output":{"compact":"a.b.c.d.e"}}"#) == "a password")
    #expect(try outcome(#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#) == "a key of type OKP")
    #expect(try outcome(#"{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}"#) == "curve secp256k1")
  }

  private let signature = #""signature":"rM5tVTA9Kf_PuFX5hZmA4Q7GDqL1195Q20RCPcwZOW4""#

  private func outcome(signedInJSON form: String, keys: String? = nil) throws -> String {
    let keys = keys ?? #"{"kty":"oct","k":"\#(secret)"}"#
    return try outcome(
      #"{"input":{"payload":"Holdfast","key":\#(keys)},"output":{"json":{"payload":"SG9sZGZhc3Q",\#(form)}}}"#)
  }

  @Test func `a JWS in JSON is verified, with its algorithm in either header and in neither twice`() throws {
    let protected = #""protected":"eyJhbGciOiJIUzI1NiJ9""#
    #expect(try outcome(signedInJSON: "\(protected),\(signature)") == "1 passed")
    #expect(try outcome(signedInJSON: #"\#(protected),"header":{"x":1},\#(signature)"#) == "1 passed")
    #expect(try outcome(signedInJSON: #""signatures":[{\#(protected),\#(signature)}]"#) == "1 passed")
    let unprotected = #""header":{"alg":"HS256"},"signature":"xfjsL8VD3_oGVI-obGBacUEvX7_gcLc0M28A5Is7sL4""#
    #expect(try outcome(signedInJSON: unprotected) == "1 passed")
    #expect(
      try outcome(signedInJSON: #"\#(protected),"header":{"alg":"HS256"},\#(signature)"#)
        == "refused: member in two headers")
    #expect(try outcome(signedInJSON: #"\#(protected),"header":{"crit":["x"]},\#(signature)"#) == "refused: crit")
    #expect(try outcome(signedInJSON: #"\#(protected),"header":[],\#(signature)"#) == "refused: header")
    #expect(try outcome(signedInJSON: #""protected":"",\#(signature)"#) == "refused: protected")
    #expect(try outcome(signedInJSON: signature) == "refused: header")
    #expect(try outcome(signedInJSON: protected) == "refused: signature")
    let mixed = #""signatures":[{\#(protected),\#(signature)}],\#(protected)"#
    #expect(try outcome(signedInJSON: mixed) == "refused: signatures")
    #expect(try outcome(signedInJSON: #""signatures":[]"#) == "refused: signatures")
    #expect(throws: VectorFault.self) { try outcome(signedInJSON: "\(protected),\(protected),\(signature)") }
  }

  @Test func `each of several signatures is verified with its key`() throws {
    let protected = #""protected":"eyJhbGciOiJIUzI1NiJ9""#
    let second = "ygJSsqnsnIGgNVTJpWJxWy4ZbjmJIefqlpMmXQjyKz8"
    let keys =
      #"[{"kty":"oct","kid":"a","k":"\#(secret)"},"#
      + #"{"kty":"oct","kid":"b","k":"ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8"}]"#
    func both(_ kid: String, _ value: String) -> String {
      #""signatures":[{\#(protected),"header":{"kid":"a"},\#(signature)},"#
        + #"{\#(protected),"header":{"kid":"\#(kid)"},"signature":"\#(value)"}]"#
    }
    #expect(try outcome(signedInJSON: both("b", second), keys: keys) == "1 passed")
    #expect(try outcome(signedInJSON: both("a", second), keys: keys) == "refused: MAC")
    #expect(try outcome(signedInJSON: both("b", second.replacing("ygJS", with: "zgJS")), keys: keys) == "refused: MAC")
    #expect(try outcome(signedInJSON: both("c", second), keys: keys) == "refused: 0 keys for a signature")
    let sameID = keys.dropLast() + #",{"kty":"RSA","kid":"a","n":"AQ","e":"AQAB"}]"#
    #expect(try outcome(signedInJSON: both("b", second), keys: String(sameID)) == "1 passed")
  }

  // A128KW for two recipients, A128GCM, and additional data.
  private let content =
    #""protected":"eyJlbmMiOiJBMTI4R0NNIn0","aad":"YWFk","iv":"AAAAAAAAAAAAAAAA","ciphertext":"S6V5OSaUg14","#
    + #""tag":"HXaTPXWlM_2a_lEIcXhp4A""#
  private let wrapped = ["EAKEbIqldnGWmjL3NmDrWNn5id1_YoLS", "8KxB3hvYsAZp4p480Es6XqlcHnjXYUc4"]

  private func outcome(encryptedInJSON form: String, kid: String = "b") throws -> String {
    let key = kid == "a" ? shortSecret : "EBESExQVFhcYGRobHB0eHw"
    return try outcome(
      #"{"input":{"plaintext":"Holdfast","key":{"kty":"oct","kid":"\#(kid)","k":"\#(key)"}},"#
        + #""output":{"json":{\#(form)}}}"#)
  }

  @Test func `a JWE in JSON is opened by the recipient whom the key is for`() throws {
    let recipients = zip(["a", "b"], wrapped).map {
      #"{"header":{"kid":"\#($0)","alg":"A128KW"},"encrypted_key":"\#($1)"}"#
    }.joined(separator: ",")
    let general = #"\#(content),"recipients":[\#(recipients)]"#
    #expect(try outcome(encryptedInJSON: general, kid: "a") == "1 passed")
    #expect(try outcome(encryptedInJSON: general) == "1 passed")
    #expect(try outcome(encryptedInJSON: general, kid: "c") == "refused: 0 recipients with that key")
    let leftOut = general.replacing(#""a","alg":"A128KW""#, with: #""a","alg":"RSA1_5""#)
    #expect(try outcome(encryptedInJSON: leftOut) == "1 passed")
    let flattened = #"\#(content),"unprotected":{"alg":"A128KW"},"encrypted_key":"\#(wrapped[1])""#
    #expect(try outcome(encryptedInJSON: flattened) == "1 passed")
    #expect(
      try outcome(encryptedInJSON: flattened.replacing("YWFk", with: "YWFl")) == "refused: it does not decrypt")
    #expect(
      try outcome(encryptedInJSON: flattened.replacing(#""aad":"YWFk","#, with: "")) == "refused: it does not decrypt")
    #expect(
      try outcome(encryptedInJSON: flattened + #","header":{"alg":"A128KW"}"#) == "refused: member in two headers")
    #expect(
      try outcome(encryptedInJSON: flattened + #","header":{"enc":"A128GCM"}"#) == "refused: member in two headers")
    #expect(
      try outcome(encryptedInJSON: general + #","encrypted_key":"\#(wrapped[1])""#) == "refused: recipients")
    #expect(throws: VectorFault.self) { try outcome(encryptedInJSON: "\(flattened),\(content)") }
  }

  @Test func `nested examples are two tests, and a file with a key is one`() throws {
    let inner = example(#""payload":"Holdfast""#, secret, #""compact":"\#(signed)""#)
    let outer = example(#""plaintext":"Holdfast""#, shortSecret, #""compact":"\#(encrypted)""#)
    #expect(try outcome(#"{"sign":\#(inner),"encrypt":\#(outer)}"#) == "2 passed")
    #expect(try outcome(#"{"kty":"oct","k":"\#(secret)"}"#) == "1 passed")
    #expect(try outcome(#"{"kty":"oct","k":"\#(secret)="}"#) == "refused: key is malformed")
  }
}
