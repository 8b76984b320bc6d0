import HoldfastFormats
import HoldfastIssuer

/// An example of RFC 7520, which is a JWS or a JWE with its keys and its content, in one form or several: compact, general JSON and
/// flattened JSON. Each form is read.
///
/// Source: RFC 7520 §4 and §5; github.com/ietf-jose/cookbook.
struct JOSEExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let input = try test.node.member("input")
    let output = try test.node.member("output")
    let forms = ["compact", "json", "json_flat"].compactMap { output.optional($0) }
    guard !forms.isEmpty else { return .skipped("no form of a message") }
    guard input.optional("pwd") == nil else { return .skipped("a password") }
    guard let key = input.optional("key")?.value else { return .skipped("a key of another form") }
    let keys = key.elements ?? [key]
    if let reason = keys.lazy.compactMap(JOSEKeys.missing).first { return .skipped(reason) }
    guard test.node.value["signing"]?["protected"]?["b64"] == nil else { return .skipped("b64, an extension") }
    let payload = input.optional("payload")
    let expected = Array(try input.member(payload == nil ? "plaintext" : "payload").text().utf8)
    for form in forms {
      let outcome = payload == nil ? open(form.value, keys, expected) : verify(form.value, keys, expected)
      guard outcome == .accepted else { return outcome }
    }
    return .accepted
  }

  /// Verifies every signature, each with its key.
  private func verify(_ form: JSONValue, _ keys: [JSONValue], _ expected: [UInt8]) -> Outcome {
    if form.text == nil, form["payload"] == nil { return .skipped("detached content") }
    do throws(Refusal) {
      let messages: [JOSEMessage]
      if let text = form.text {
        messages = [try JOSEMessage(text, partCount: 3)]
      } else {
        messages = try JOSEMessage.signatures(in: form)
      }
      for message in messages {
        guard !message.texts[1].isEmpty else { return .skipped("detached content") }
        guard let (algorithm, hashName) = SignatureAlgorithm.named(message.algorithm) else {
          return .skipped("alg \(message.algorithm)")
        }
        // In an example, keys of different types have the same id.
        let found = keys.filter {
          message.isFor($0, isOnly: keys.count == 1) && (keys.count == 1 || $0["kty"]?.text == algorithm.keyType)
        }
        guard found.count == 1 else { throw Refusal(reason: "\(found.count) keys for a signature") }
        let key = try JOSEKeys(found[0]).key(for: message, purpose: .signature)
        try algorithm.verify(message.parts[1], of: message.signedOctets, key: key, hashName: hashName)
        guard message.parts[0] == expected else { return .differs("payload") }
      }
      return .accepted
    } catch { return .refused(error.reason) }
  }

  /// Opens a message with each key, which is for one of its recipients. Those whose algorithm is not read are ignored.
  private func open(_ form: JSONValue, _ keys: [JSONValue], _ expected: [UInt8]) -> Outcome {
    do throws(Refusal) {
      let messages: [EncryptedMessage]
      if let text = form.text {
        messages = [try EncryptedMessage(text)]
      } else {
        let (recipients, authenticated) = try JOSEMessage.recipients(in: form)
        messages = try recipients.map { (message) throws(Refusal) in
          try EncryptedMessage(message, authenticating: authenticated)
        }
      }
      let read = messages.filter { JWEKeyManagement(rawValue: $0.algorithm) != nil }
      guard !read.isEmpty else { return .skipped("alg \(messages[0].algorithm)") }
      for key in keys {
        let found = messages.filter { $0.isFor(key, isOnly: messages.count == 1) }
        guard found.count == 1 else { throw Refusal(reason: "\(found.count) recipients with that key") }
        guard JWEKeyManagement(rawValue: found[0].algorithm) != nil else { continue }
        let plaintext = try found[0].open(with: found[0].key(in: JOSEKeys(key)))
        guard plaintext == expected else { return .differs("plaintext") }
      }
      return .accepted
    } catch { return .refused(error.reason) }
  }
}

/// An example of RFC 7520 §3: a file that is a JSON Web Key, which is read strictly.
struct JWKExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    if let reason = JOSEKeys.missing(test.node.value) { return .skipped(reason) }
    do throws(Refusal) { _ = try test.node.value.parsedKey() } catch { return .refused(error.reason) }
    return .accepted
  }
}
