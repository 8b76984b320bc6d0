import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastVectors
import TestSupport
import Testing

/// The traps of JOSE, each in a message that is right in every other way.
@Suite struct JSONWebTests {
  private let secret = [UInt8](0..<32)
  private let signatureKey = """
    {"kty":"oct","kid":"a","use":"sig","alg":"HS256","k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}
    """
  private let contentKey = """
    {"kty":"oct","kid":"a","use":"enc","alg":"A256GCM","k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}
    """

  /// The outcome of a test that is said to be valid.
  private func outcome(
    _ type: String, key: String, test: String, result: String = "valid", comment: String = ""
  ) throws -> String {
    let report = try replay(
      """
      {"schema":"json_web_crypto_schema_v1.json","numberOfTests":1,"testGroups":[{"type":"\(type)","private":\(key),
      "tests":[{"tcId":1,"comment":"\(comment)","result":"\(result)",\(test)}]}]}
      """)
    return report.skips.first?.reason ?? report.failures.first?.happened ?? "accepted"
  }

  private func encoded(_ text: String) -> String { base64URL(Array(text.utf8).span) }

  private func signed(_ header: String = #"{"alg":"HS256","kid":"a"}"#, payload: String = "Zm9v") throws -> String {
    let message = encoded(header) + "." + payload
    var code = [UInt8](repeating: 0, count: 32)
    var output = code.mutableSpan
    try HMAC.sha256.authenticate(Array(message.utf8).span, key: secret.span, into: &output)
    return message + "." + base64URL(code.span)
  }

  private func verified(
    _ message: String, key: String? = nil, result: String = "valid", comment: String = ""
  ) throws -> String {
    try outcome(
      "JsonWebSignature", key: key ?? signatureKey, test: "\"jws\":\"\(message)\"", result: result, comment: comment)
  }

  private func encrypted(
    _ header: String = #"{"alg":"dir","kid":"a","enc":"A256GCM"}"#, _ message: [UInt8] = Array("foo".utf8),
    tag tagByteCount: Int = 16
  ) throws -> String {
    let (nonce, protected) = ([UInt8](repeating: 7, count: 12), encoded(header))
    var message = message
    var tag = AuthenticationTag()
    var bytes = message.mutableSpan
    try AESGCM.seal(
      key: secret.span, nonce: nonce.span, authenticating: Array(protected.utf8).span, message: &bytes, tag: &tag)
    let kept = base64URL(tag.bytes.extracting(first: tagByteCount))
    return [protected, "", base64URL(nonce.span), base64URL(message.span), kept].joined(separator: ".")
  }

  private func opened(
    _ message: String, key: String? = nil, plaintext: String = "666f6f", result: String = "valid"
  ) throws -> String {
    try outcome(
      "JsonWebEncryption", key: key ?? contentKey, test: "\"jwe\":\"\(message)\",\"pt\":\"\(plaintext)\"",
      result: result)
  }

  @Test func `a signed message verifies, with spaces in its header too`() throws {
    #expect(try verified(signed()) == "accepted")
    #expect(try verified(signed(#"{ "kid" : "a", "alg" : "HS256" }"#)) == "accepted")
  }

  @Test func `base64url with padding, spaces or trailing bits is refused`() throws {
    #expect(try verified(signed(payload: "Zg")) == "accepted")
    // The same byte with other unused bits, under a MAC over just this text.
    #expect(try verified(signed(payload: "Zh")) == "refused: base64url")
    for payload in ["Zg==", "Z g", "Z+g", "Z"] {
      #expect(try verified(signed(payload: payload)) == "refused: base64url")
    }
    let lenient = try verified(signed(payload: "Z?g"), comment: "InvalidCharacterInsertedInPayload")
    #expect(lenient == "characters outside base64url in a valid test")
  }

  @Test(arguments: [
    (#"{"alg":"HS256","kid":"a","crit":["exp"],"exp":1}"#, "crit"), (#"{"alg":"HS256","kid":"a","crit":[]}"#, "crit"),
    (#"{"alg":"HS256","kid":"a","b64":false}"#, "crit"), (#"{"alg":"HS256","alg":"HS256"}"#, "header"),
    (#"{"alg":"HS256","\u0061lg":"HS256"}"#, "header"), (#"{"kid":"a"}"#, "header without alg"),
    (#"{"alg":"none","kid":"a"}"#, "alg none"), (#"{"alg":"hs256","kid":"a"}"#, "alg hs256"),
    (#"{"alg":"HS256","kid":"b"}"#, "0 keys with that kid"),
  ])
  func `a header with a trap is refused`(header: String, reason: String) throws {
    #expect(try verified(signed(header)) == "refused: \(reason)")
    let other = header.replacing("HS256", with: "dir").replacing("{", with: "{\"enc\":\"A256GCM\",")
    if reason != "alg none", reason != "alg hs256" { #expect(try opened(encrypted(other)) == "refused: \(reason)") }
  }

  @Test(arguments: [
    ("\"use\":\"sig\"", "\"use\":\"enc\"", "refused: key for another use"),
    ("\"use\":\"sig\"", "\"key_ops\":[\"sign\"]", "refused: key for another use"),
    ("\"use\":\"sig\"", "\"key_ops\":[\"verify\"]", "accepted"),
    ("\"alg\":\"HS256\"", "\"alg\":\"A256KW\"", "refused: key for another alg"),
    ("Hh8\"", "Hg\"", "refused: key of 31 bytes"), ("AAEC", "", "refused: key of 29 bytes"),
    ("\"kid\"", "\"kty\":\"oct\",\"kid\"", "malformed"),
  ])
  func `a key that is not for this is refused`(old: String, new: String, expected: String) throws {
    let key = signatureKey.replacing(old, with: new)
    if expected == "malformed" {
      #expect(throws: VectorFault.self) { try verified(signed(), key: key) }
    } else {
      #expect(try verified(signed(), key: key) == expected)
    }
  }

  @Test func `of two tests that contradict others, a key for another alg is skipped if the message verifies`() throws {
    let key = signatureKey.replacing("\"alg\":\"HS256\"", with: "\"alg\":\"HS384\"")
    let outcome = try verified(signed(), key: key, comment: "Figure20")
    #expect(outcome == "a key for another alg in a valid test")
    #expect(try verified(signed(), key: key, result: "invalid", comment: "Figure20") == "accepted")
    #expect(try verified(signed().dropLast(2) + "AA", key: key, comment: "Figure20") == "refused: MAC")
  }

  @Test func `algorithms and keys that Holdfast does not have are skipped, and only in valid tests`() throws {
    let okp = #"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AA"}"#
    for name in ["EdDSA", "ES256K"] {
      let message = try signed("{\"alg\":\"\(name)\",\"kid\":\"a\"}")
      #expect(try verified(message, key: okp) == "alg \(name)")
      #expect(try verified(message, key: okp, result: "invalid") == "accepted")
    }
    for (header, reason) in [
      (#"{"alg":"HPKE-0","enc":"A256GCM"}"#, "alg HPKE-0"), (#"{"alg":"dir","enc":"XC20P"}"#, "enc XC20P"),
      (#"{"alg":"ECDH-ES","enc":"A256GCM","epk":{"kty":"OKP","crv":"X25519","x":"AA"}}"#, "a key of type OKP"),
      (#"{"alg":"ECDH-ES","enc":"A256GCM","epk":{"kty":"EC","crv":"secp256k1"}}"#, "curve secp256k1"),
    ] {
      #expect(try opened(encrypted(header)) == reason)
      #expect(try opened(encrypted(header), result: "invalid") == "accepted")
    }
  }

  @Test func `a set is refused if it mixes secret and public keys, or has a kid twice`() throws {
    let other = signatureKey.replacing("\"kid\":\"a\"", with: "\"kid\":\"b\"")
    let elliptic = #"{"kty":"EC","kid":"c","crv":"P-256","x":"","y":""}"#
    #expect(try verified(signed(), key: "{\"keys\":[\(other),\(signatureKey)]}") == "accepted")
    #expect(
      try verified(signed(), key: "{\"keys\":[\(signatureKey),\(signatureKey)]}") == "refused: 2 keys with that kid")
    #expect(
      try verified(signed(), key: "{\"keys\":[\(signatureKey),\(elliptic)]}")
        == "refused: secret and public keys in a set")
  }

  @Test func `an encrypted message opens only with its whole tag`() throws {
    #expect(try opened(encrypted()) == "accepted")
    #expect(try opened(encrypted(), plaintext: "66") == "accepted, but pt differs")
    for byteCount in [0, 4, 12, 15] {
      #expect(try opened(encrypted(tag: byteCount)) == "refused: its header, its parts or the key do not fit")
    }
  }

  @Test func `an encrypted message opens only with a key for its alg and enc`() throws {
    let other = contentKey.replacing("\"alg\":\"A256GCM\"", with: "\"alg\":\"A256KW\"")
    #expect(try opened(encrypted(), key: other) == "refused: key for another alg")
    let stated = contentKey.replacing("\"use\"", with: "\"enc\":\"A128GCM\",\"use\"")
    #expect(try opened(encrypted(), key: stated) == "refused: key for another enc")
    let signing = contentKey.replacing("\"use\":\"enc\"", with: "\"use\":\"sig\"")
    #expect(try opened(encrypted(), key: signing) == "refused: key for another use")
    let short = #"{"alg":"dir","kid":"a","enc":"A128GCM"}"#
    let any = contentKey.replacing("\"alg\":\"A256GCM\",", with: "")
    #expect(try opened(encrypted(short), key: any) == "refused: its header, its parts or the key do not fit")
  }

  @Test func `a compressed message is inflated, in blocks of each kind, and a damaged one is refused`() throws {
    func inflated(_ compressed: [UInt8], _ plaintext: [UInt8], zip: String = "DEF") throws -> String {
      try opened(
        encrypted("{\"alg\":\"dir\",\"kid\":\"a\",\"enc\":\"A256GCM\",\"zip\":\"\(zip)\"}", compressed),
        plaintext: hex(plaintext))
    }
    // By Python: zlib.compressobj(level, zlib.DEFLATED, -15), of these texts.
    let foo = Array("foo".utf8)
    let repeated = (0..<800).map { $0 % 2 == 0 ? UInt8(ascii: "a") : UInt8(ascii: "b") }
    let squares = Array((0..<100).map { "\($0 * $0)," }.joined().utf8)
    let dynamic = hex(
      "1591c901002108031be221821cfd37e6e4a52b214cd8636e696b5e769f4559ae55dab8f939e69733932a8a4582e63ece598b"
        + "9be8e94697c93969efaebd2e2b74c5d97c37ef437dd16dc997463f38b863e5f2f48bb987a6a4c63dcd2d0194481a229f1403"
        + "84f788c2457ccfda8d9376f3386474dcd2adf536aa2eba5047e02f68c803bf489c4333a29916c3dc5808f2c092a2ca802f13"
        + "d22c98b3955631de21cf73050e25a6624f995febb6bcd5a14a97b34d3aead15b8d4b0d7e7d9e96434733d3fa31b71b825e58"
        + "46ab9f0bdfa4fe45c13c03fd2a070a6e50b24d52ee90f703")
    #expect(try inflated(hex("4bcbcf0700"), foo) == "accepted")
    #expect(try inflated(hex("010300fcff666f6f"), foo) == "accepted")
    #expect(try inflated(hex("4b4c4a1c85a37014e28000"), repeated) == "accepted")
    #expect(try inflated(dynamic, squares) == "accepted")
    #expect(try inflated(hex("cbcbcf0700"), foo, zip: "GZ") == "refused: zip")
    for count in [0, 1, 20, dynamic.count - 1] {
      #expect(try inflated(Array(dynamic.prefix(count)), squares) == "refused: zip")
    }
    // A distance before the beginning.
    #expect(try inflated(hex("4b04a200"), foo) == "refused: zip")
  }

  @Test func `RSA1_5 and passwords are skipped, and only in valid tests`() throws {
    let key = #"{"kty":"oct","k":"AAECAwQFBgcICQoLDA0ODw"}"#
    #expect(try opened(encrypted(#"{"alg":"RSA1_5","enc":"A256GCM"}"#), key: key) == "alg RSA1_5")
    #expect(
      try opened(encrypted(#"{"alg":"PBES2-HS256+A128KW","enc":"A256GCM"}"#), key: key) == "alg PBES2-HS256+A128KW")
    #expect(
      try opened(encrypted(#"{"alg":"RSA1_5","kid":"a","enc":"A256GCM"}"#)) == "refused: key for another alg")
  }
}
