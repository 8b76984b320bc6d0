import HoldfastVectors
import Testing

/// Each of Wycheproof's types that is replayed, with published values.
@Suite struct WycheproofTypesTests {
  /// A file of one group and one test.
  private func file(_ algorithm: String, _ type: String, group: String, test: String, result: String) -> String {
    """
    {"algorithm":"\(algorithm)","schema":"mac_test_schema_v1.json","numberOfTests":1,"testGroups":[
    {"type":"\(type)",\(group)"tests":[{"tcId":7,"comment":"a comment",\(test)"result":"\(result)"}]}]}
    """
  }

  /// The outcomes of the same test under each of the three results.
  private func outcomes(_ algorithm: String, _ type: String, group: String = "", test: String) throws -> [String] {
    try ["valid", "invalid", "acceptable"].map { result in
      let report = try replay(file(algorithm, type, group: group, test: test, result: result))
      if let skip = report.skips.first { return skip.reason }
      return report.failures.first?.happened ?? "passed"
    }
  }

  @Test(arguments: [
    // RFC 4231, test case 2, and RFC 2202, test case 2.
    ("HMACSHA1", 160, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    ("HMACSHA256", 256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    ("HMACSHA256", 128, "5bdcc146bf60754e6a042426089575c7"),
    (
      "HMACSHA384", 384,
      "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"
    ),
    ("HMACSHA512", 64, "164b7a7bfcf819e2"),
  ])
  func `MacTest compares tags of the group's size`(algorithm: String, size: Int, tag: String) throws {
    let message = #""key":"4a656665","msg":"7768617420646f2079612077616e7420666f72206e6f7468696e673f","#
    let group = "\"keySize\":32,\"tagSize\":\(size),"
    #expect(
      try outcomes(algorithm, "MacTest", group: group, test: "\(message)\"tag\":\"\(tag)\",")
        == ["passed", "accepted", "passed"])
    let wrong = tag.dropLast() + (tag.last == "0" ? "1" : "0")
    #expect(
      try outcomes(algorithm, "MacTest", group: group, test: "\(message)\"tag\":\"\(wrong)\",")
        == ["refused: tag differs", "passed", "passed"])
    #expect(
      try outcomes(algorithm, "MacTest", group: group, test: "\(message)\"tag\":\"\(tag.dropLast(2))\",")
        == ["refused: tag of \(size / 8 - 1) bytes", "passed", "passed"])
  }

  @Test(arguments: [
    ("AES-CMAC", 128, "algorithm AES-CMAC"), ("HMACSHA1", 168, "tag of 168 bits"), ("HMACSHA1", 0, "tag of 0 bits"),
  ])
  func `MacTest skips what Holdfast has not`(algorithm: String, size: Int, reason: String) throws {
    let group = "\"keySize\":32,\"tagSize\":\(size),"
    let test = #""key":"","msg":"","tag":"","#
    #expect(try outcomes(algorithm, "MacTest", group: group, test: test) == [reason, reason, reason])
  }

  private let gcm = #""ivSize":96,"keySize":128,"tagSize":128,"#

  /// McGrew and Viega, test case 2, with the parts that are named replaced.
  private func gcmTest(
    key: String = "00000000000000000000000000000000", iv: String = "000000000000000000000000",
    message: String = "00000000000000000000000000000000", ciphertext: String = "0388dace60b6a392f328c2b971b2fe78",
    tag: String = "ab6e47d42cec13bdf53a67b21257bddf"
  ) -> String {
    "\"key\":\"\(key)\",\"iv\":\"\(iv)\",\"aad\":\"\",\"msg\":\"\(message)\",\"ct\":\"\(ciphertext)\",\"tag\":\"\(tag)\","
  }

  @Test func `AeadTest opens and seals AES-GCM`() throws {
    #expect(try outcomes("AES-GCM", "AeadTest", group: gcm, test: gcmTest()) == ["passed", "accepted", "passed"])
    let forged = gcmTest(tag: "ab6e47d42cec13bdf53a67b21257bdde")
    #expect(
      try outcomes("AES-GCM", "AeadTest", group: gcm, test: forged) == [
        "refused: it does not open", "passed", "passed",
      ])
    let other = gcmTest(message: "00000000000000000000000000000001")
    let differs = "accepted, but msg differs"
    #expect(try outcomes("AES-GCM", "AeadTest", group: gcm, test: other) == [differs, differs, differs])
    let short = gcmTest(tag: "ab6e47d42cec13bdf53a67b2")
    #expect(
      try outcomes("AES-GCM", "AeadTest", group: gcm, test: short) == ["refused: tag of 12 bytes", "passed", "passed"])
  }

  @Test func `AeadTest opens and seals the composites of AES-CBC and HMAC`() throws {
    // Computed by Python, as RFC 7518 §5.2.2 says.
    let key = (0..<32).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    func test(tag: String, message: String = "686f6c6466617374") -> String {
      #""key":"\#(key)","iv":"1af38c2dc2b96ffdd86694092341bc04","aad":"616164","msg":"\#(message)","#
        + #""ct":"fb6ced2de4d89216f1ff803b3f59d46c","tag":"\#(tag)","#
    }
    let group = #""ivSize":128,"keySize":256,"tagSize":128,"#
    let tag = "35d8cf6bf76e581afcb347d443c18fdd"
    func outcomes(_ test: String) throws -> [String] {
      try self.outcomes("A128CBC-HS256", "AeadTest", group: group, test: test)
    }
    #expect(try outcomes(test(tag: tag)) == ["passed", "accepted", "passed"])
    #expect(try outcomes(test(tag: tag.dropLast() + "e")) == ["refused: it does not open", "passed", "passed"])
    #expect(try outcomes(test(tag: String(tag.dropLast(2)))).first == "refused: it does not open")
    #expect(try outcomes(test(tag: tag, message: "00")).first == "accepted, but msg differs")
  }

  @Test func `AeadTest skips other IVs, tags, keys and algorithms`() throws {
    let iv = gcmTest(iv: "0000000000000000")
    #expect(try outcomes("AES-GCM", "AeadTest", group: gcm, test: iv).first == "IV of 8 bytes")
    let tag = #""ivSize":96,"keySize":128,"tagSize":96,"#
    #expect(try outcomes("AES-GCM", "AeadTest", group: tag, test: gcmTest()).first == "tag of 96 bits")
    let key = gcmTest(key: "00")
    #expect(try outcomes("AES-GCM", "AeadTest", group: gcm, test: key).first == "key of 1 bytes")
    #expect(try outcomes("AES-CCM", "AeadTest", group: gcm, test: gcmTest()).first == "algorithm AES-CCM")
  }

  @Test func `HkdfTest derives, and asks for no more than there is`() throws {
    // RFC 5869, test case 1.
    let input = #""ikm":"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b","salt":"000102030405060708090a0b0c","#
    let info = #""info":"f0f1f2f3f4f5f6f7f8f9","#
    let output = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    func test(_ size: UInt64, _ output: String) -> String { "\(input)\(info)\"size\":\(size),\"okm\":\"\(output)\"," }
    #expect(try outcomes("HKDF-SHA-256", "HkdfTest", test: test(42, output)) == ["passed", "accepted", "passed"])
    let wrong = output.dropLast() + "4"
    #expect(
      try outcomes("HKDF-SHA-256", "HkdfTest", test: test(42, String(wrong)))
        == ["accepted, but okm differs", "passed", "accepted, but okm differs"])
    #expect(
      try outcomes("HKDF-SHA-256", "HkdfTest", test: test(42, ""))
        == Array(repeating: "accepted, but okm differs", count: 3))
    for size in [8161, 1 << 20, 1 << 50] as [UInt64] {
      #expect(
        try outcomes("HKDF-SHA-256", "HkdfTest", test: test(size, "")) == ["refused: size \(size)", "passed", "passed"])
    }
    #expect(try outcomes("HKDF-SHA3-256", "HkdfTest", test: test(42, output)).first == "algorithm HKDF-SHA3-256")
  }

  @Test func `HkdfTest derives with other hashes`() throws {
    // RFC 5869, test case 4.
    let test = """
      "ikm":"0b0b0b0b0b0b0b0b0b0b0b","salt":"000102030405060708090a0b0c","info":"f0f1f2f3f4f5f6f7f8f9","size":42,
      "okm":"085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896",
      """
    #expect(try outcomes("HKDF-SHA-1", "HkdfTest", test: test) == ["passed", "accepted", "passed"])
    #expect(try outcomes("HKDF-SHA-384", "HkdfTest", test: test).first == "accepted, but okm differs")
    #expect(try outcomes("HKDF-SHA-512", "HkdfTest", test: test).first == "accepted, but okm differs")
  }

  @Test func `EcdhEcpointTest takes private keys of any length and uncompressed points`() throws {
    // RFC 5903 §8.1.
    let x = "d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63"
    let y = "56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab"
    let scalar = "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433"
    let shared = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"
    let curve = #""curve":"secp256r1","encoding":"ecpoint","#
    func test(_ point: String, _ scalar: String, _ shared: String) -> String {
      "\"public\":\"\(point)\",\"private\":\"\(scalar)\",\"shared\":\"\(shared)\","
    }
    let good = test("04" + x + y, scalar, shared)
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: good) == ["passed", "accepted", "passed"])
    let padded = test("04" + x + y, "0000" + scalar, shared)
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: padded).first == "passed")
    let one = test("04" + x + y, "01", x)
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: one).first == "passed")
    let differs = "accepted, but shared differs"
    let wrong = test("04" + x + y, scalar, x)
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: wrong) == [differs, differs, differs])
    let off = test("04" + x + x, scalar, shared)
    let refused = ["refused: no shared secret", "passed", "passed"]
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: off) == refused)
    for scalar in ["", "00", String(repeating: "f", count: 64)] {
      let bad = test("04" + x + y, scalar, shared)
      #expect(try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: bad) == refused)
    }
    let long = test("04" + x + y, "01" + scalar, shared)
    #expect(
      try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: long)
        == ["refused: private key of 33 bytes", "passed", "passed"])
    let short = test("03" + x, scalar, shared)
    #expect(
      try outcomes("ECDH", "EcdhEcpointTest", group: curve, test: short) == ["compressed point", "passed", "passed"])
    let other = #""curve":"secp256k1","encoding":"ecpoint","#
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: other, test: good) == refused)
    let unknown = #""curve":"secp256z1","encoding":"ecpoint","#
    #expect(try outcomes("ECDH", "EcdhEcpointTest", group: unknown, test: good).first == "curve secp256z1")
    // The same point in the only SubjectPublicKeyInfo that it has, and in others. Source: RFC 5480 §2.
    let prefix = "3059301306072a8648ce3d020106082a8648ce3d030107034200"
    func encoded(_ key: String) -> String { test(key, scalar, shared) }
    #expect(
      try outcomes("ECDH", "EcdhTest", group: curve, test: encoded("\(prefix)04\(x)\(y)"))
        == ["passed", "accepted", "passed"])
    for key in [
      "\(prefix)04\(x)\(x)", "\(prefix)04\(x)\(y)00", "308159\(prefix.dropFirst(4))04\(x)\(y)", "04\(x)\(y)", "",
    ] {
      #expect(
        try outcomes("ECDH", "EcdhTest", group: curve, test: encoded(key))
          == ["refused: public key", "passed", "passed"])
    }
  }

  @Test(arguments: ["publicKey", "key"])
  func `EcdsaP1363Verify verifies with P-256 and SHA-256`(name: String) throws {
    // RFC 6979 §A.2.5.
    let x = "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
    let y = "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
    let signature =
      "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
      + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
    func group(_ curve: String = "secp256r1", _ hash: String = "SHA-256") -> String {
      """
      "\(name)":{"type":"EcPublicKey","curve":"\(curve)","keySize":256,"uncompressed":"04\(x)\(y)","wx":"\(x)","wy":"00\(y)"},
      "sha":"\(hash)",
      """
    }
    func test(_ signature: String) -> String { "\"msg\":\"73616d706c65\",\"sig\":\"\(signature)\"," }
    #expect(
      try outcomes("ECDSA", "EcdsaP1363Verify", group: group(), test: test(signature)) == [
        "passed", "accepted", "passed",
      ])
    #expect(
      try outcomes("ECDSA", "EcdsaP1363Verify", group: group(), test: test(signature.dropLast() + "9"))
        == ["refused: it does not verify", "passed", "passed"])
    #expect(
      try outcomes("ECDSA", "EcdsaP1363Verify", group: group(), test: test(signature + "00"))
        == ["refused: it does not verify", "passed", "passed"])
    #expect(
      try outcomes("ECDSA", "EcdsaP1363Verify", group: group("secp256z1"), test: test(signature)).first
        == "curve secp256z1")
    #expect(
      try outcomes("ECDSA", "EcdsaP1363Verify", group: group("secp256r1", "SHA-0"), test: test(signature)).first
        == "hash SHA-0")
    // The same signature in DER, and with a length in a longer form.
    let (r, s) = (signature.prefix(64), signature.suffix(64))
    let pair = "022100\(r)022100\(s)"
    #expect(
      try outcomes("ECDSA", "EcdsaVerify", group: group(), test: test("3046\(pair)")) == [
        "passed", "accepted", "passed",
      ])
    for encoding in ["308146\(pair)", "3047\(pair)00", "3046\(pair)00", signature, ""] {
      #expect(
        try outcomes("ECDSA", "EcdsaVerify", group: group(), test: test(encoding))
          == ["refused: it does not verify", "passed", "passed"])
    }
  }

  @Test(arguments: [
    // RFC 3394 §4.1 and RFC 5649 §6.
    (
      "AES-WRAP", "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
      "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"
    ),
    (
      "AES-KWP", "5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8", "466f7250617369",
      "afbeb0f07dfbf5419200f2ccb50bb24f"
    ),
  ])
  func `KeywrapTest unwraps and wraps`(algorithm: String, key: String, message: String, wrapped: String) throws {
    func test(_ message: String, _ wrapped: String) -> String {
      "\"key\":\"\(key)\",\"msg\":\"\(message)\",\"ct\":\"\(wrapped)\","
    }
    #expect(
      try outcomes(algorithm, "KeywrapTest", test: test(message, wrapped)) == ["passed", "accepted", "passed"])
    #expect(
      try outcomes(algorithm, "KeywrapTest", test: test("00", wrapped)).first == "accepted, but msg differs")
    for bad in [wrapped.dropLast() + "a", wrapped.dropLast(2), wrapped.dropLast(16), wrapped.prefix(0)] {
      #expect(
        try outcomes(algorithm, "KeywrapTest", test: test(message, String(bad)))
          == ["refused: it does not unwrap", "passed", "passed"])
    }
    #expect(try outcomes("ARIA-WRAP", "KeywrapTest", test: test(message, wrapped)).first == "algorithm ARIA-WRAP")
  }
}
