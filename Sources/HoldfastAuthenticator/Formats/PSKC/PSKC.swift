import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads a Portable Symmetric Key Container with HOTP, TOTP and OCRA keys: plain, or encrypted under a key or a
  /// passphrase.
  ///
  /// Source: RFC 6030. Entries of the kind `pin`, which are not keys, are skipped. Signatures are not checked.
  static func readContainer(
    _ bytes: Span<UInt8>, parameters: borrowing ImportParameters
  ) throws(ImportFault) -> [Credential] {
    let container = try XMLDocument.parse(bytes)
    guard container.name == "KeyContainer", PSKCNames.pskc.contains(container.namespace) else { throw .malformed }
    guard container.attributes["Version"] == "1.0" else { throw .unsupportedFeature }
    guard parameters.acceptsUncheckedSignature || !container.children.contains(where: { $0.name == "Signature" })
    else { throw .signatureNotChecked }
    let packages = container.children.filter { $0.name == "KeyPackage" && PSKCNames.pskc.contains($0.namespace) }
    guard packages.count <= maximumAccountCount else { throw .tooLarge }
    let protection = try PSKCProtection(container: container, containerKey: parameters.containerKey)
    var credentials: [Credential] = []
    for package in packages {
      let device = try package.child("DeviceInfo", in: PSKCNames.pskc)
      guard let element = try package.child("Key", in: PSKCNames.pskc) else { throw .malformed }
      let key = PSKCKey(element)
      guard !key.isPIN else { continue }
      if !parameters.acceptsUnenforcedPolicy {
        guard try device?.child("DeviceBinding", in: PSKCNames.pskc) == nil else { throw .policyNotEnforced }
      }
      try key.checkPolicy(acceptsUnenforced: parameters.acceptsUnenforcedPolicy)
      credentials.append(try key.credential(protection: protection, user: parameters.user))
    }
    return credentials
  }
}

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

  /// Whether the entry is the PIN of another key. Source: RFC 6030 §10.2.
  var isPIN: Bool { algorithm == Self.prefix + "pin" }

  /// Checks that the policy permits the key to make codes and has no limits that Holdfast does not enforce.
  ///
  /// Source: RFC 6030 §5: a key may not be used by software that does not understand its policy.
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

  /// Makes the credential from the key. `user` takes precedence over the names in the key.
  func credential(protection: PSKCProtection, user: String?) throws(ImportFault) -> Credential {
    guard let data = try element.child("Data", in: PSKCNames.pskc) else { throw .unsupportedFeature }
    let method = try method(data, protection)
    let counter = try number("Counter", in: data, protection)
    guard counter ?? 0 <= Credential.maximumCounter else { throw .invalidCounter }
    // A key without a secret is derived by its reader from a master key, which Holdfast does not support. Source: RFC
    // 6030 §4.2, KeyProfileId.
    guard let secretElement = try data.child("Secret", in: PSKCNames.pskc) else { throw .unsupportedFeature }
    let secret = try bytes(secretElement, protection)
    let issuer = try text("Issuer") ?? ""
    let name = if let user { user } else { try name() }
    return try .checked(
      issuer: issuer, user: name, method: method,
      nextCounter: method.isCounted ? counter ?? 0 : 0, secret: secret)
  }

  /// Returns the name of the key's owner: the user ID if present, otherwise the friendly name, otherwise the key's
  /// identifier.
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
      // Holdfast supports no other start of the time steps than the Unix epoch.
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

  /// Returns the length of the code; nil if the container does not state it.
  private static func digits(_ response: XMLElement?) throws(ImportFault) -> CodeLength? {
    guard let response else { return nil }
    guard response.attributes["Encoding"] == "DECIMAL" else { throw .unsupportedFeature }
    guard let text = response.attributes["Length"], let digits = UInt64(decimal: Array(text.utf8).span),
      let length = CodeLength(Int(digits))
    else { throw .invalidDigits }
    return length
  }

  private static func isFalse(_ text: String) -> Bool { text == "false" || text == "0" }

  /// Reads a number in the key's data; returns nil if it is absent. A plain number is decimal; an encrypted one has up
  /// to 8 bytes, most significant first.
  ///
  /// Source: RFC 6030 §4.2, "intDataType" and "longDataType". Writers omit leading zero bytes.
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

  /// Reads the bytes of a value, which is plain base64 or encrypted.
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
  /// Creates the hash that the suite of a HOTP or TOTP key names; SHA-1 if there is no suite.
  fileprivate init?(pskcSuite suite: String?) {
    switch suite {
    case nil, "HMAC-SHA1": self = .sha1
    case "HMAC-SHA256": self = .sha256
    case "HMAC-SHA512": self = .sha512
    default: return nil
    }
  }
}

/// The namespaces and algorithm names of key containers.
///
/// Source: RFC 6030 §10 and §12; XML Encryption 1.1 §3 and §5; RFC 9231 §2.2.
enum PSKCNames {
  static let pskc = ["urn:ietf:params:xml:ns:keyprov:pskc"]
  static let signature = ["http://www.w3.org/2000/09/xmldsig#"]
  static let encryption = ["http://www.w3.org/2001/04/xmlenc#"]
  static let encryption11 = ["http://www.w3.org/2009/xmlenc11#"]
  /// The namespaces of PBKDF2's parameters. The figure in RFC 6030 puts them in the namespace of PKCS #5 and their
  /// children in none, so the children inherit the container's namespace where that is the default.
  static let derivation = [
    "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#", "http://www.w3.org/2009/xmlenc11#", "",
    "urn:ietf:params:xml:ns:keyprov:pskc",
  ]

  /// Whether `algorithm` names PBKDF2, as PKCS #5 (RFC 6030) or as XML Encryption 1.1.
  static func isPBKDF2(_ algorithm: String?) -> Bool {
    algorithm == "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2"
      || algorithm == "http://www.w3.org/2009/xmlenc11#pbkdf2"
  }

  /// Returns the HMAC that a MAC or a PBKDF2 function names.
  static func hmac(_ algorithm: String?) -> HMAC? {
    switch algorithm {
    case "http://www.w3.org/2000/09/xmldsig#hmac-sha1": .sha1
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256": .sha256
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha384": .sha384
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512": .sha512
    default: nil
    }
  }
}

/// A cipher of a container, with the length of its key.
enum PSKCCipher: Equatable {
  /// AES-CBC, which requires a MAC.
  case aesCBC(keyByteCount: Int)
  /// AES key wrap, which has an integrity check.
  case aesKeyWrap(keyByteCount: Int)

  init(_ algorithm: String?) throws(ImportFault) {
    switch algorithm {
    case "http://www.w3.org/2001/04/xmlenc#aes128-cbc": self = .aesCBC(keyByteCount: 16)
    case "http://www.w3.org/2001/04/xmlenc#aes192-cbc": self = .aesCBC(keyByteCount: 24)
    case "http://www.w3.org/2001/04/xmlenc#aes256-cbc": self = .aesCBC(keyByteCount: 32)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes128": self = .aesKeyWrap(keyByteCount: 16)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes192": self = .aesKeyWrap(keyByteCount: 24)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes256": self = .aesKeyWrap(keyByteCount: 32)
    default: throw .unsupportedAlgorithm
    }
  }

  var keyByteCount: Int {
    switch self {
    case .aesCBC(let count), .aesKeyWrap(let count): count
    }
  }

  /// Decrypts `value`. If the cipher requires a MAC, the caller has already checked it.
  ///
  /// - Throws: `wrongKey` if the value does not decrypt.
  func open(_ value: Span<UInt8>, key: Span<UInt8>) throws(ImportFault) -> SecretBytes {
    guard key.count == keyByteCount else { throw .wrongKey }
    do {
      switch self {
      case .aesCBC:
        guard value.count >= 32, value.count % 16 == 0 else { throw CryptographyFailure() }
        return try AESCBC.decrypt(
          key: key, initializationVector: value.extracting(first: 16),
          message: value.extracting(droppingFirst: 16), padding: .xmlEncryption)
      case .aesKeyWrap: return try AESKeyWrap.unwrap(key: key, wrapped: value)
      }
    } catch {
      throw .wrongKey
    }
  }
}
