import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct JWETests {
  @Test func `every key management and content encryption of two peers opens`() throws {
    let cases = try PeerToken.encrypted()
    var seen: Set<String> = []
    for token in cases {
      #expect(try token.open() == token.plaintext, "\(token.name)")
      seen.formUnion([token.algorithm, token.encryption])
    }
    #expect(seen.count == JWEKeyManagement.allCases.count + JWEContentEncryption.allCases.count)
  }

  @Test func `what is sealed opens again, for every combination of the peers`() throws {
    for token in try PeerToken.encrypted() {
      let key = try token.key()
      var random = SystemRandom()
      let plain = Array("again".utf8)
      let sealed = try key.seal(plain.span, contentType: "JWT", random: &random)
      #expect(try token.opening(sealed) == "again", "\(token.name)")
      #expect(Set(sealed).isSubset(of: Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)))
    }
  }

  @Test func `a changed character of any part is refused`() throws {
    for token in try PeerToken.encrypted() {
      let parts = token.token.split(separator: ".", omittingEmptySubsequences: false)
      for index in parts.indices where !parts[index].isEmpty {
        var changed = parts.map { Array($0.utf8) }
        changed[index][0] = changed[index][0] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let text = Array(changed.joined(separator: [UInt8(ascii: ".")]))
        #expect(throws: JOSEFault.self, "\(token.name) \(index)") { try token.opening(text) }
      }
    }
  }

  @Test func `a header that names another algorithm than the key is refused before the key is used`() throws {
    for token in try PeerToken.encrypted() {
      var key = try token.key()
      for algorithm in JWEKeyManagement.allCases where algorithm.rawValue != token.algorithm {
        let changed = try token.withHeader("alg", .string(algorithm.rawValue))
        #expect(throws: JOSEFault.unexpected) { _ = try key.open(changed.span, contentType: "JWT") }
      }
      for encryption in JWEContentEncryption.allCases where encryption.rawValue != token.encryption {
        let changed = try token.withHeader("enc", .string(encryption.rawValue))
        #expect(throws: JOSEFault.unexpected) { _ = try key.open(changed.span, contentType: "JWT") }
      }
    }
  }

  @Test(arguments: ["zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64"])
  func `a header parameter that is never honoured is refused`(name: String) throws {
    let token = try PeerToken.encrypted()[0]
    for value in [JSONValue.string("DEF"), .array([]), .null] {
      let changed = try token.withHeader(name, value)
      #expect(throws: JOSEFault.refused) { try token.opening(changed) }
    }
  }

  @Test
  func `another content type is refused, and an unknown parameter counts as part of what is authenticated`() throws {
    let token = try PeerToken.encrypted()[0]
    let otherType = try token.withHeader("cty", .string("text"))
    #expect(throws: JOSEFault.unexpected) { try token.opening(otherType) }
    let unknown = try token.withHeader("holdfast", .integer(1))
    #expect(throws: JOSEFault.cryptography) { try token.opening(unknown) }
  }

  @Test func `a header with a member twice is malformed, also in other spelling`() throws {
    let token = try PeerToken.encrypted()[0]
    for header in [#"{"alg":"dir","alg":"dir"}"#, #"{"enc":"A256GCM","\u0065nc":"A256GCM"}"#] {
      let changed = token.withEncodedHeader(Array(header.utf8))
      #expect(throws: JOSEFault.malformed) { try token.opening(changed) }
    }
  }

  @Test(arguments: [
    "", ".", "....", "a.b.c.d", "a.b.c.d.e.f", "e30....", "e30=....", "e3 0....", "e31....", "W10....", "bm8....",
  ])
  func `text that is no compact serialisation of an object is refused`(text: String) throws {
    let token = try PeerToken.encrypted()[0]
    #expect(throws: JOSEFault.self) { try token.opening(Array(text.utf8)) }
  }

  @Test func `an ephemeral key off the curve, on another curve or with a private half is refused`() throws {
    for token in try PeerToken.encrypted() where token.algorithm == "ECDH-ES" {
      let header = try token.header()
      let key = try #require(header["epk"]?.members)
      func replacing(_ name: String, _ value: JSONValue) throws -> [UInt8] {
        try token.withHeader("epk", .object(key.filter { $0.0 != name } + [(name, value)]))
      }
      let count = try token.key().materialCoordinateByteCount
      let zeros = base64URL([UInt8](repeating: 0, count: count).span)
      let offCurve = try replacing("y", .string(zeros))
      #expect(throws: JOSEFault.cryptography) { try token.opening(offCurve) }
      let otherCurve = try replacing("crv", .string("P-192"))
      #expect(throws: JOSEFault.unexpected) { try token.opening(otherCurve) }
      let privateHalf = try replacing("d", .string(zeros))
      #expect(throws: JOSEFault.unexpected) { try token.opening(privateHalf) }
      let short = try replacing("x", .string("AAAA"))
      #expect(throws: JOSEFault.unexpected) { try token.opening(short) }
    }
  }

  /// The token with one of its five parts replaced.
  private func replacing(_ part: Int, of token: PeerToken, with bytes: [UInt8]) -> [UInt8] {
    var parts = token.token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    parts[part] = base64URL(bytes.span)
    return Array(parts.joined(separator: ".").utf8)
  }

  @Test func `an encrypted key, a vector or a tag of another length is refused before any key is used`() throws {
    for token in try PeerToken.encrypted() {
      for part in [2, 4] {
        for count in [0, 8, 15, 33, 64] {
          let changed = replacing(part, of: token, with: [UInt8](repeating: 1, count: count))
          #expect(throws: JOSEFault.unexpected, "\(token.name) \(part) \(count)") { try token.opening(changed) }
        }
      }
      let isDirect = ["dir", "ECDH-ES"].contains(token.algorithm)
      for count in isDirect ? [1, 40] : [0, 8] where !token.algorithm.hasPrefix("RSA") {
        let changed = replacing(1, of: token, with: [UInt8](repeating: 1, count: count))
        #expect(throws: JOSEFault.unexpected, "\(token.name) \(count)") { try token.opening(changed) }
      }
    }
  }

  @Test func `a header of more than 1024 bytes and a token of more than 8192 are malformed`() throws {
    let token = try PeerToken.encrypted()[0]
    let header = [UInt8](#"{"x":""#.utf8) + [UInt8](repeating: 0x61, count: 1100) + [UInt8](#""}"#.utf8)
    #expect(throws: JOSEFault.malformed) { try token.opening(token.withEncodedHeader(header)) }
    let long = replacing(3, of: token, with: [UInt8](repeating: 1, count: 6200))
    #expect(long.count > 8192)
    #expect(throws: JOSEFault.malformed) { try token.opening(long) }
  }

  @Test func `a key id must be the key's where the header has one`() throws {
    let scalar = [UInt8](repeating: 3, count: 32)
    var random = SystemRandom()
    for (written, expected) in [("one", "one"), ("two", "one"), (nil, "one")] as [(String?, String)] {
      let sender = try JWEKey(
        ECPrivateKey(curve: .p256, scalar: scalar.span), management: .ecdhES, encryption: .a256GCM, keyID: written)
      let sealed = try sender.seal([1, 2].span, contentType: "JWT", random: &random)
      var key = try JWEKey(
        ECPrivateKey(curve: .p256, scalar: scalar.span), management: .ecdhES, encryption: .a256GCM, keyID: expected)
      if written == "two" {
        #expect(throws: JOSEFault.unexpected) { _ = try key.open(sealed.span, contentType: "JWT") }
      } else {
        let plain = try key.open(sealed.span, contentType: "JWT")
        #expect(plain.bytes.array == [1, 2])
      }
    }
  }

  @Test func `the token of RFC 7518 appendix C derives its key`() throws {
    let parties = JWEParties(producer: Array("Alice".utf8), recipient: Array("Bob".utf8))
    let shared = hex("9e56d91d817135d372834283bf84269cfb316ea3da806a48f6daa7798cfe90c4")
    let key = try parties.deriveKey(from: shared.span, algorithm: "A128GCM", byteCount: 16)
    #expect(key.bytes.array == hex("56aa8deaf8236d205c2228cd71a7101a"))
  }

  @Test func `a key of the wrong kind or size for its algorithm is refused`() {
    for json in [
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"A256KW","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"dir","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"ECDH-ES","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"RSA-OAEP","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"RSA1_5","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"PBES2-HS256+A128KW","enc":"A256GCM"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA","alg":"A128KW"}"#,
      #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA"}"#, #"{"kty":"EC","crv":"P-256","alg":"ECDH-ES","enc":"A256GCM"}"#,
    ] {
      #expect(throws: JOSEFault.unexpected, "\(json)") { _ = try JWEKey(parsing: Array(json.utf8).span) }
    }
  }
}

extension JWEKey {
  var materialCoordinateByteCount: Int { material.curve?.coordinateByteCount ?? 0 }
}
