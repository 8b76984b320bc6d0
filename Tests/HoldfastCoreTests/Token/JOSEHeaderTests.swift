import HoldfastOpenSSL
import Testing

import HoldfastCore

/// JOSE headers, and the envelopes that they describe.
@Suite struct JOSEHeaderTests {
  private func read(_ json: [UInt8]) throws(EncodingFault) {
    let header = try JOSEHeader(json.span)
    _ = header.partyU.count
  }

  private func header(_ member: String) -> [UInt8] { Array("{\"x\":\(member)}".utf8) }

  @Test func `members that nobody knows are passed over, as deep as eight`() throws {
    for value in ["1", "true", "null", "\"\\ud83d\\ude00\"", "{\"a\":[]}", "[[[[[[[1]]]]]]]"] {
      try read(header(value))
    }
    #expect(throws: EncodingFault.malformed) { try read(header("[[[[[[[[1]]]]]]]]")) }
  }

  @Test(
    arguments: [
      "1.0", "1e3", "01", "-1", "+1", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\\ud800\\ud800\"",
      "\"\\x\"", "9007199254740992", "[1,]", "{\"a\":1,\"\\u0061\":2}",
    ])
  func `what is passed over must be JSON all the same`(value: String) {
    #expect(throws: EncodingFault.self) { try read(header(value)) }
  }

  @Test func `a header that is not UTF-8 is malformed, wherever`() {
    #expect(throws: EncodingFault.malformed) { try read(Array("{\"x\":\"".utf8) + [0xff] + Array("\"}".utf8)) }
  }

  @Test(arguments: ["b64", "zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256"])
  func `a member that would change what a token means, or whose key counts, is refused whatever its value`(
    name: String
  ) throws {
    for value in ["true", "\"DEF\"", "[]", "{}"] {
      #expect(throws: EncodingFault.unexpected) { try read(Array("{\"\(name)\":\(value)}".utf8)) }
      try read(Array("{\"\(name)x\":\(value)}".utf8))
    }
  }

  @Test func `an encrypted token says how it is encrypted, and that it holds a JWT`() throws {
    let example = try ComputedExample()
    let iv = Array(base64URL(example["iv"]).utf8)
    let header = String(decoding: example["jose-encryption-header"], as: UTF8.self)
    func reads(_ header: String) -> Bool {
      do throws(EncodingFault) {
        let bytes = Array(header.utf8)
        let envelope = try JOSEEnvelope(header: try JOSEHeader(bytes.span), encryptedKey: Span(), iv: iv.span)
        _ = envelope.point
        return true
      } catch { return false }
    }
    #expect(reads(header))
    for member in ["cty", "enc", "alg", "epk"] {
      let without = header.replacing("\"\(member)\":", with: "\"\(member)2\":")
      #expect(without != header && !reads(without), "\(member)")
    }
  }

  @Test func `an ephemeral key on P-256 has no private part`() throws {
    let coordinate = base64URL([UInt8](repeating: 1, count: 32))
    func key(_ more: String = "", type: String = "EC", curve: String = "P-256") -> [UInt8] {
      Array(
        "{\"epk\":{\"kty\":\"\(type)\",\"crv\":\"\(curve)\",\"x\":\"\(coordinate)\",\"y\":\"\(coordinate)\"\(more)}}"
          .utf8)
    }
    try read(key())
    try read(key(",\"use\":\"enc\""))
    #expect(throws: EncodingFault.unexpected) { try read(key(",\"d\":\"\(coordinate)\"")) }
    #expect(throws: EncodingFault.unexpected) { try read(key(type: "OKP")) }
    #expect(throws: EncodingFault.unexpected) { try read(key(curve: "P-384")) }
  }

  @Test func `a signature's algorithm encrypts nothing`() throws {
    let example = try ComputedExample()
    let iv = Array(base64URL(example["iv"]).utf8)
    let header = String(decoding: example["jose-encryption-header"], as: UTF8.self)
    for (algorithm, wrapped) in [("ES256", 40), ("ECDH-ES", 40), ("ECDH-ES+A256KW", 0), ("ES256", 0)] {
      let changed = Array(header.replacing("\"ECDH-ES\"", with: "\"\(algorithm)\"").utf8)
      let key = Array(base64URL([UInt8](repeating: 0, count: wrapped)).utf8)
      #expect(throws: EncodingFault.unexpected) {
        let envelope = try JOSEEnvelope(header: try JOSEHeader(changed.span), encryptedKey: key.span, iv: iv.span)
        _ = envelope.point
      }
    }
  }
}
