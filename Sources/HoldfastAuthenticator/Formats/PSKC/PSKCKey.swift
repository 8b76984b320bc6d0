import HoldfastCore
import HoldfastOpenSSL

/// One key of a container.
///
/// Source: RFC 6030 §4.2, §4.3, §5 and §10.
struct PSKCKey {
  private let element: XMLElement
  private let algorithm: String

  private static let prefix = "urn:ietf:params:xml:ns:keyprov:pskc:"

  init(_ element: XMLElement) {
    self.element = element
    algorithm = element.attributes["Algorithm"] ?? ""
  }

  /// Whether it is the PIN of another key. Source: RFC 6030 §10.2.
  var isPIN: Bool { algorithm == Self.prefix + "pin" }

  /// Throws unless the key may make codes, and for limits that nobody here enforces.
  ///
  /// Source: RFC 6030 §5: who does not understand a policy may not use the key.
  func checkPolicy(acceptsUnenforced: Bool) throws(ImportFault) {
    guard let policy = try element.child("Policy", in: PSKCNames.pskc) else { return }
    var usages: [String] = []
    for child in policy.children {
      if child.name == "KeyUsage" {
        usages.append(try child.trimmedText())
      } else if !acceptsUnenforced {
        throw .policyNotEnforced
      }
    }
    guard usages.isEmpty || usages.contains("OTP") || usages.contains("CR") else { throw .unsupportedFeature }
  }

  /// The credential that the key is; `user` goes before the names in it.
  func credential(protection: PSKCProtection, user: String?) throws(ImportFault) -> Credential {
    guard let data = try element.child("Data", in: PSKCNames.pskc) else { throw .unsupportedFeature }
    let method = try method(data, protection)
    let counter = try number("Counter", in: data, protection)
    guard counter ?? 0 <= Credential.maximumCounter else { throw .invalidCounter }
    // A key without a secret is one that its reader derives from a master key: RFC 6030 §4.2, KeyProfileId.
    guard let secretElement = try data.child("Secret", in: PSKCNames.pskc) else { throw .unsupportedFeature }
    let secret = try bytes(secretElement, protection)
    let issuer = try text("Issuer") ?? ""
    let name = if let user { user } else { try name() }
    return try .checked(
      issuer: issuer, user: name, method: method,
      nextCounter: method.isCounted ? counter ?? 0 : 0, secret: secret)
  }

  /// Who has the key: its user, else what people call it, else its identifier.
  private func name() throws(ImportFault) -> String {
    if let user = try text("UserId") { return user }
    if let name = try text("FriendlyName") { return name }
    return element.attributes["Id"] ?? ""
  }

  private func text(_ name: String) throws(ImportFault) -> String? {
    try element.child(name, in: PSKCNames.pskc)?.trimmedText()
  }
}

extension PSKCKey {
  private func method(
    _ data: XMLElement, _ protection: PSKCProtection
  ) throws(ImportFault) -> CodeMethod {
    let parameters = try element.child("AlgorithmParameters", in: PSKCNames.pskc)
    let suite = try parameters?.child("Suite", in: PSKCNames.pskc)?.trimmedText()
    let challenge = try parameters?.child("ChallengeFormat", in: PSKCNames.pskc)
    let response = try parameters?.child("ResponseFormat", in: PSKCNames.pskc)
    for format in [challenge, response] where format?.attributes["CheckDigits"].map(Self.isFalse) == false {
      throw .unsupportedFeature
    }
    let digits = try Self.digits(response)
    switch algorithm {
    case Self.prefix + "hotp":
      guard let hash = OATHHash(pskcSuite: suite) else { throw .unsupportedAlgorithm }
      return .hotp(hash, digits ?? .six)
    case Self.prefix + "totp":
      guard let hash = OATHHash(pskcSuite: suite) else { throw .unsupportedAlgorithm }
      // What time is counted from: nobody but the Unix epoch's users is here.
      guard try number("Time", in: data, protection) ?? 0 == 0 else { throw .unsupportedFeature }
      let periodSeconds = try number("TimeInterval", in: data, protection) ?? 30
      guard (1...CodeMethod.maximumPeriodSeconds).contains(periodSeconds) else { throw .invalidPeriod }
      return .totp(hash, digits ?? .six, periodSeconds: periodSeconds)
    case Self.prefix + "ocra":
      guard let suite, let parsed = OCRASuite(suite) else { throw .unsupportedAlgorithm }
      guard digits == nil || digits == parsed.length else { throw .invalidDigits }
      return .ocra(parsed)
    default: throw .unsupportedAlgorithm
    }
  }

  /// The code's length; nil where nothing says it.
  private static func digits(_ response: XMLElement?) throws(ImportFault) -> CodeLength? {
    guard let response else { return nil }
    guard response.attributes["Encoding"] == "DECIMAL" else { throw .unsupportedFeature }
    guard let text = response.attributes["Length"], let digits = UInt64(decimal: Array(text.utf8).span),
      let length = CodeLength(Int(digits))
    else { throw .invalidDigits }
    return length
  }

  private static func isFalse(_ text: String) -> Bool { text == "false" || text == "0" }

  /// A number of the data; nil without one. Plain it is in decimal, encrypted it is up to 8 bytes, the most significant first.
  ///
  /// Source: RFC 6030 §4.2, "intDataType" and "longDataType". Writers leave leading zero bytes out.
  private func number(
    _ name: String, in data: XMLElement, _ protection: PSKCProtection
  ) throws(ImportFault) -> UInt64? {
    guard let value = try data.child(name, in: PSKCNames.pskc) else { return nil }
    if let plain = try value.child("PlainValue", in: PSKCNames.pskc) {
      guard let number = UInt64(decimal: Array(try plain.trimmedText().utf8).span) else {
        throw name == "Counter" ? .invalidCounter : .malformed
      }
      return number
    }
    let bytes = try bytes(value, protection)
    guard (1...8).contains(bytes.count) else { throw .malformed }
    var number: UInt64 = 0
    for index in 0..<bytes.count { number = number << 8 | UInt64(bytes.bytes[index]) }
    return number
  }

  /// The bytes of a value, plain in base64 or encrypted.
  private func bytes(
    _ value: XMLElement, _ protection: PSKCProtection
  ) throws(ImportFault) -> SecretBytes {
    let plain = try value.child("PlainValue", in: PSKCNames.pskc)
    let encrypted = try value.child("EncryptedValue", in: PSKCNames.pskc)
    switch (plain, encrypted) {
    case (let plain?, nil): return try plain.base64()
    case (nil, let encrypted?):
      return try protection.open(encrypted, valueMAC: try value.child("ValueMAC", in: PSKCNames.pskc))
    default: throw .malformed
    }
  }
}

extension OATHHash {
  /// The hash that a suite of a HOTP or TOTP key names; SHA-1 without one.
  fileprivate init?(pskcSuite suite: String?) {
    switch suite {
    case nil, "HMAC-SHA1": self = .sha1
    case "HMAC-SHA256": self = .sha256
    case "HMAC-SHA512": self = .sha512
    default: return nil
    }
  }
}
