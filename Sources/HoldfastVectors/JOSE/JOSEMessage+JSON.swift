import HoldfastFormats

/// The JSON forms, general and flattened. Members that are not defined are ignored. Source: RFC 7515 §7.2, RFC 7516 §7.2.
extension JOSEMessage {
  /// Reads the signatures of a JWS, each as a message with the payload.
  static func signatures(in value: JSONValue) throws(Refusal) -> [JOSEMessage] {
    let payload = try value.part("payload")
    return try value.items("signatures", flattened: ["protected", "header", "signature"]).map {
      (signature) throws(Refusal) in
      try JOSEMessage(
        [signature.optionalPart("protected"), payload, signature.part("signature")],
        unprotected: signature["header"].map { [$0] } ?? [])
    }
  }

  /// Reads the recipients of a JWE, each as a message with the content, and the data that the content authenticates.
  static func recipients(in value: JSONValue) throws(Refusal) -> (messages: [JOSEMessage], authenticated: [UInt8]) {
    let protected = try value.optionalPart("protected")
    let content = [try value.optionalPart("iv"), try value.part("ciphertext"), try value.optionalPart("tag")]
    let messages = try value.items("recipients", flattened: ["header", "encrypted_key"]).map {
      (recipient) throws(Refusal) in
      try JOSEMessage(
        [protected, recipient.optionalPart("encrypted_key")] + content,
        unprotected: [value["unprotected"], recipient["header"]].compactMap(\.self))
    }
    // Source: RFC 7516 §5.1, step 14.
    let additional = value["aad"] == nil ? [] : [UInt8(ascii: ".")] + (try value.part("aad"))
    return (messages, protected + additional)
  }
}

extension JSONValue {
  /// The elements of an array of the general form, or the message itself, which has these members in the flattened form only.
  fileprivate func items(_ name: String, flattened: [String]) throws(Refusal) -> [JSONValue] {
    guard let array = self[name] else { return [self] }
    guard let elements = array.elements, !elements.isEmpty, flattened.allSatisfy({ self[$0] == nil }) else {
      throw Refusal(reason: name)
    }
    return elements
  }

  /// The text of a member in base64url, which is decoded later.
  fileprivate func part(_ name: String) throws(Refusal) -> [UInt8] {
    guard let text = self[name]?.text else { throw Refusal(reason: name) }
    return Array(text.utf8)
  }

  /// The text of a member that is absent if it would be empty.
  fileprivate func optionalPart(_ name: String) throws(Refusal) -> [UInt8] {
    guard self[name] != nil else { return [] }
    let text = try part(name)
    guard !text.isEmpty else { throw Refusal(reason: name) }
    return text
  }
}
