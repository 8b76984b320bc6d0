import HoldfastFormats
import HoldfastIssuer

/// An example of RFC 7520, which is a JWS or a JWE in compact form with its key and its content.
///
/// Holdfast reads only the compact form. Source: RFC 7520 §4 and §5; github.com/ietf-jose/cookbook.
struct JOSEExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let input = try test.node.member("input")
    guard let compact = try test.node.member("output").optional("compact") else { return .skipped("no compact form") }
    let text = try compact.text()
    guard let key = input.optional("key")?.value else { return .skipped("a key of another form") }
    guard key["kty"]?.text != "OKP" else { return .skipped("a key of type OKP") }
    guard test.node.value["signing"]?["protected"]?["b64"] == nil else { return .skipped("b64, an extension") }
    if let payload = input.optional("payload") {
      return verify(text, key, expected: Array(try payload.text().utf8))
    }
    return open(text, key, expected: Array(try input.member("plaintext").text().utf8))
  }

  private func verify(_ text: String, _ key: JSONValue, expected: [UInt8]) -> Outcome {
    do throws(Refusal) {
      let message = try CompactMessage(text, partCount: 3)
      guard !message.texts[1].isEmpty else { return .skipped("detached content") }
      guard let (algorithm, hashName) = SignatureAlgorithm.named(message.algorithm) else {
        return .skipped("alg \(message.algorithm)")
      }
      let key = try JOSEKeys(key).key(for: message, purpose: .signature)
      try algorithm.verify(message.parts[1], of: message.signedOctets, key: key, hashName: hashName)
      return message.parts[0] == expected ? .accepted : .differs("payload")
    } catch { return .refused(error.reason) }
  }

  private func open(_ text: String, _ key: JSONValue, expected: [UInt8]) -> Outcome {
    do throws(Refusal) {
      let message = try EncryptedMessage(text)
      guard JWEKeyManagement(rawValue: message.algorithm) != nil else { return .skipped("alg \(message.algorithm)") }
      let plaintext = try message.open(with: message.key(in: JOSEKeys(key)))
      return plaintext == expected ? .accepted : .differs("plaintext")
    } catch { return .refused(error.reason) }
  }
}

/// An example of RFC 7520 §3: a file that is a JSON Web Key, which is read strictly.
struct JWKExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    do throws(Refusal) { _ = try test.node.value.parsedKey() } catch { return .refused(error.reason) }
    return .accepted
  }
}
