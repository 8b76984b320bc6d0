import HoldfastFormats

/// Wycheproof's `JsonWebSignature`, `JsonWebKey`, `JsonWebEncryption` and `JsonWebCrypto`: a message in compact form, a JWS or
/// a JWE, and the key or the set of keys with which it is verified or opened.
///
/// Source: C2SP/wycheproof, `schemas/json_web_*_schema_v1.json`; RFC 7515 to 7518, RFC 8725.
struct JSONWebTest: ReplayableGroup {
  /// The keys that open messages, and verify them if no other ones are given.
  private let privateKeys: JOSEKeys
  private let publicKeys: JOSEKeys
  /// The messages that tests of the group call valid.
  private let validMessages: Set<String>

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    let privateKey = group.optional("private")?.value
    let publicKey = group.optional("public")?.value
    guard let anyKey = privateKey ?? publicKey else { throw try group.member("private").fault(.missing) }
    privateKeys = JOSEKeys(privateKey ?? anyKey)
    publicKeys = JOSEKeys(publicKey ?? anyKey)
    let tests = try group.member("tests").elements()
    validMessages = Set(tests.filter { $0.value["result"]?.text == "valid" }.compactMap { $0.value["jws"]?.text })
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    if let encrypted = test.node.optional("jwe") {
      let expected = try test.node.optional("pt")?.bytes()
      return open(encrypted.value, expected: expected, of: test)
    }
    return verify(try test.node.member("jws").value, of: test)
  }

  /// The comments of the two tests that expect a reader that ignores such characters. Others expect one that does not.
  private static let lenientComments = ["InvalidCharacterInsertedInHeader", "InvalidCharacterInsertedInPayload"]
  /// The comments of the two tests that call a message without padding invalid, which others call valid.
  private static let paddingComments = ["invalidBase64Padding", "invalidBase64PaddingInPayload"]
  /// The comment of tests that call a key for PS256 valid with PS384. Others call such keys invalid.
  private static let otherKeyComment = "Figure20"

  private func open(_ value: JSONValue, expected: [UInt8]?, of test: VectorTest) -> Outcome {
    guard let text = value.text else { return .refused("it is not in compact form") }
    do throws(Refusal) {
      let message = try EncryptedMessage(text)
      if test.result == .valid, let missing = message.missing { return .skipped(missing) }
      let key = try message.key(in: privateKeys)
      if message.isLeftOut {
        return test.result == .valid ? .skipped("alg \(message.algorithm)") : .refused("alg \(message.algorithm)")
      }
      let plaintext = try message.open(with: key)
      return expected == nil || plaintext == expected ? .accepted : .differs("pt")
    } catch { return .refused(error.reason) }
  }

  private func verify(_ value: JSONValue, of test: VectorTest) -> Outcome {
    guard let text = value.text else { return .refused("it is not in compact form") }
    let isValid = test.result == .valid
    if isValid, Self.lenientComments.contains(test.comment), text.utf8.contains(where: { !isOfCompactForm($0) }) {
      return .skipped("characters outside base64url in a valid test")
    }
    if Self.paddingComments.contains(test.comment), validMessages.contains(text) {
      return .skipped("the same message as in a valid test")
    }
    do throws(Refusal) {
      let message = try JOSEMessage(text, partCount: 3)
      guard let (algorithm, hashName) = SignatureAlgorithm.named(message.algorithm) else {
        let reason = "alg \(message.algorithm)"
        let isMissing = isValid && SignatureAlgorithm.missing.contains(message.algorithm)
        return isMissing ? .skipped(reason) : .refused(reason)
      }
      let key = try publicKeys.key(for: message, purpose: .signature)
      let isForAlgorithm = key.isKey(forAny: [message.algorithm])
      guard isForAlgorithm || isValid && test.comment == Self.otherKeyComment else {
        return .refused("key for another alg")
      }
      try algorithm.verify(message.parts[1], of: message.signedOctets, key: key, hashName: hashName)
      return isForAlgorithm ? .accepted : .skipped("a key for another alg in a valid test")
    } catch { return .refused(error.reason) }
  }

  private func isOfCompactForm(_ character: UInt8) -> Bool {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}
