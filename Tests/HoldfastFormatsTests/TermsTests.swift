import HoldfastCore
import HoldfastOpenSSL
import Testing

import HoldfastFormats

@Suite struct TermsTests {
  private static let digest = Digest()
  private let key: P256PrivateKeyBox

  init() throws { key = try P256PrivateKeyBox() }

  private func terms(_ conditions: Conditions) throws -> Terms {
    Terms(
      issuer: BoundedText("issuer.example"), tokenDigest: Self.digest, issued: 1_790_000_000,
      subject: BoundedText("app"), version: AppVersion(major: 1, minor: 2, patch: 3), conditions: conditions)
  }

  private func signed(_ conditions: Conditions) throws -> SignedTerms {
    try SignedTerms(try terms(conditions), point: key.point, sign: key.sign)
  }

  private func fullConditions() throws -> Conditions {
    var conditions = Conditions()
    conditions.offlineSeconds = 86_400
    conditions.settings = AppSettings(.json, Array(#"{"language":"de","half":0.5}"#.utf8))
    #expect(conditions.settings != nil)
    let (one, two, twelve) = (try version("1.0"), try version("2"), try version("12"))
    conditions.rules = [
      try #require(ComplianceRule(.os, of: "debian", .atLeast, [twelve], otherwise: .wipe)),
      try #require(ComplianceRule(.app, .range, [one, two], otherwise: .warn)),
    ]
    return conditions
  }

  private func version(_ text: String) throws -> DottedVersion { try #require(DottedVersion(text)) }

  @Test func `signed terms are read as they were written`() throws {
    let signed = try signed(try fullConditions())
    let read = try SignedTerms(verifying: signed.bytes)
    #expect(read == signed)
    #expect(read.key.point == key.point)
    #expect(read.terms.offlineUntil == 1_790_086_400)
  }

  @Test func `terms do not name the token's id, and those of earlier versions, which do, are read`() throws {
    let signed = try signed(try fullConditions())
    let parts = signed.bytes.split(separator: UInt8(ascii: ".")).map { Array($0) }
    let (header, payload) = (parts[0], parts[1])
    let text = String(decoding: try decodePublicBase64URL(payload.span), as: UTF8.self)
    #expect(!text.contains("jti"))
    let earlier = Array((#"{"jti":"AAAAAAAAAAAAAAAAAAAAAA","# + text.dropFirst()).utf8)
    let bytes = try key.jws(
      header: try decodePublicBase64URL(header.span), encodedPayload: Array(base64URL(earlier.span).utf8))
    #expect(try SignedTerms(verifying: bytes).terms == signed.terms)
  }

  @Test func `the largest settings and the longest rules fit`() throws {
    var conditions = Conditions()
    conditions.settings = AppSettings(.bytes, [UInt8](repeating: 0xff, count: AppSettings.maximumByteCount))
    let long = try version("1111111111.2222222222.3333333333")
    let rule = try #require(
      ComplianceRule(
        .os, of: String(repeating: "x", count: 32), .oneOf, Array(repeating: long, count: 8), otherwise: .block))
    conditions.rules = Array(repeating: rule, count: ComplianceRule.maximumCount)
    #expect(try SignedTerms(verifying: try signed(conditions).bytes).terms.conditions == conditions)
    #expect(AppSettings(.bytes, [UInt8](repeating: 0, count: AppSettings.maximumByteCount + 1)) == nil)
  }

  @Test func `any other byte makes the terms invalid`() throws {
    let bytes = try signed(try fullConditions()).bytes
    // Every 7th byte, which meets header, payload and signature.
    for index in stride(from: 0, to: bytes.count, by: 7) {
      var changed = bytes
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      guard changed != bytes else { continue }
      #expect(throws: TermsFault.self, "byte \(index)") { try SignedTerms(verifying: changed) }
    }
    for count in [0, 1, bytes.count / 2, bytes.count - 1] {
      #expect(throws: TermsFault.self) { try SignedTerms(verifying: Array(bytes[..<count])) }
    }
    for more in [".", "=", "A", "\n", ".e30"] {
      #expect(throws: TermsFault.self) { try SignedTerms(verifying: bytes + Array(more.utf8)) }
    }
    #expect(throws: TermsFault.malformed) {
      try SignedTerms(verifying: [UInt8](repeating: 0x41, count: SignedTerms.maximumByteCount + 1))
    }
  }

  @Test func `a signature of another key is refused, and so is another type or a key in the header`() throws {
    let signed = try signed(try fullConditions())
    let payload = signed.bytes.split(separator: UInt8(ascii: "."))[1]
    for header in [
      #"{"alg":"ES256","kid":"KID","typ":"holdfast-mt+jwt"}"#,
      #"{"alg":"none","kid":"KID","typ":"holdfast-terms+jwt"}"#,
      #"{"alg":"ES256","kid":"AAAAAAAAAAA","typ":"holdfast-terms+jwt"}"#,
      #"{"alg":"ES256","kid":"KID","typ":"holdfast-terms+jwt","crit":[]}"#,
      #"{"alg":"ES256","typ":"holdfast-terms+jwt"}"#,
    ] {
      let text = header.replacing("KID", with: base64URL(try key.id().bytes))
      #expect(throws: TermsFault.cryptography, "\(header)") {
        try SignedTerms(verifying: try key.jws(header: Array(text.utf8), encodedPayload: Array(payload)))
      }
    }
    let right = #"{"typ":"holdfast-terms+jwt","alg":"ES256","kid":"\#(base64URL(try key.id().bytes))"}"#
    let reordered = try key.jws(header: Array(right.utf8), encodedPayload: Array(payload))
    #expect(try SignedTerms(verifying: reordered).terms == signed.terms)
    let other = try P256PrivateKeyBox().jws(header: Array(right.utf8), encodedPayload: Array(payload))
    #expect(throws: TermsFault.cryptography) { try SignedTerms(verifying: other) }
  }

  @Test(arguments: [
    #"{"type":"json","value":"e30"}"#, #"{"type":"json","value":"ezE="}"#,
    #"{"type":"json","value":"eyJhIjoxLCJhIjoyfQ=="}"#,
    #"{"type":"text","value":"/w=="}"#, #"{"type":"xml","value":""}"#, #"{"type":"text"}"#, #"{"value":""}"#,
    #"{"type":"text","value":"","more":1}"#, #"{"type":"bytes","value":"AB=="}"#, #"[]"#,
    #"{"type":"bytes","value":"AA==AA=="}"#,
  ])
  func `settings that are not what they say are refused`(json: String) throws {
    #expect(throws: JSONMistake.self) {
      try AppSettings(JSONMember(JSONValue(parsing: Array(json.utf8), byteLimit: 4096)))
    }
  }

  @Test func `padding inside long settings is refused`() throws {
    // 4096 characters are decoded at a time.
    let text = String(repeating: "A", count: 4094) + "==AAAA"
    #expect(throws: EncodingFault.self) { try decodePublicPaddedBase64(text) }
    #expect(try decodePublicPaddedBase64(String(repeating: "A", count: 8192)).count == 6144)
  }

  @Test(arguments: [
    #"{"offline_seconds":0}"#, #"{"offline_seconds":-1}"#, #"{"offline_seconds":400000000}"#,
    #"{"compliance":[{"subject":"app","operator":"~","versions":["1"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"app","operator":"<","versions":["1","2"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"app","operator":"in","versions":[],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"app","operator":"range","versions":["2","1"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"app","operator":"range","versions":["2","2.0"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"app","os":"debian","operator":"<","versions":["1"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"os","operator":"<","versions":["1a"],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"os","operator":"<","versions":[1],"action":"warn"}]}"#,
    #"{"compliance":[{"subject":"os","operator":"<","versions":["1"],"action":"delete"}]}"#,
    #"{"compliance":[{"subject":"os","operator":"<","versions":["1"]}]}"#,
    #"{"compliance":{}}"#, #"{"settings":null}"#,
  ])
  func `conditions with a mistake are refused as a whole`(json: String) throws {
    #expect(throws: (any Error).self) {
      try Conditions(JSONMember(JSONValue(parsing: Array(json.utf8), byteLimit: 4096)))
    }
  }

  @Test func `versions are compared number by number`() throws {
    #expect(try version("24.04") == version("24.4.0"))
    #expect(try version("1.10") > version("1.9"))
    #expect(try version("2") > version("1.9.9.9.9.9.9.9"))
    for text in ["", ".", "1.", ".1", "1..2", "1.2.3.4.5.6.7.8.9", "v1", "1 ", "99999999999999999999", "-1", "１"] {
      #expect(DottedVersion(text) == nil, "\(text)")
    }
  }

  @Test(arguments: [
    ("<", ["2"], [true, false, false]), ("<=", ["2"], [true, true, false]), ("=", ["2"], [false, true, false]),
    ("!=", ["2"], [true, false, true]), (">=", ["2"], [false, true, true]), (">", ["2"], [false, false, true]),
    ("in", ["1", "3"], [true, false, true]), ("range", ["2", "3"], [false, true, false]),
  ])
  func `each operator says which of 1, 2 and 3 comply`(name: String, texts: [String], expected: [Bool]) throws {
    let comparison = try #require(ComplianceRule.Comparison(rawValue: name))
    let versions = try texts.map(version)
    let rule = try #require(ComplianceRule(.app, comparison, versions, otherwise: .block))
    #expect(try ["1", "2", "3"].map { rule.isMet(by: try version($0)) } == expected)
  }
}

/// A key that closures can share.
private final class P256PrivateKeyBox {
  private var key: P256PrivateKey
  let point: P256Point

  init() throws {
    key = try P256PrivateKey()
    point = key.publicPoint
  }

  func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> { try key.sign(digest) }

  func id() throws -> KeyID {
    var cryptography = OpenSSLCryptography()
    return try keyID(of: point, using: &cryptography)
  }

  func jws(header: [UInt8], encodedPayload: [UInt8]) throws -> [UInt8] {
    var text: [UInt8] = []
    text.append(asBase64URL: header.span)
    text.append(UInt8(ascii: "."))
    text += encodedPayload
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(text.span)
    let signature = try sign(try hash.finish())
    text.append(UInt8(ascii: "."))
    text.append(asBase64URL: signature.bytes)
    return text
  }
}
