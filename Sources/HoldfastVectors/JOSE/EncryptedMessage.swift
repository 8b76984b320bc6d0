import HoldfastFormats
import HoldfastIssuer

/// A JWE in compact form, or for one recipient of one in JSON, which the issuer's own ``JWEKey`` opens. Source: RFC 7516 §5.2.
struct EncryptedMessage {
  /// The message in compact form; nil for one in JSON.
  private var text: [UInt8]?
  private let message: JOSEMessage
  /// The data that the content authenticates.
  private let authenticated: [UInt8]
  private let encryption: String

  /// Parses the text of a message, without any key.
  init(_ text: String) throws(Refusal) {
    let message = try JOSEMessage(text, partCount: 5)
    try self.init(message, authenticating: message.texts[0])
    self.text = Array(text.utf8)
  }

  /// Makes a message of a recipient's parts and the data that the content authenticates.
  init(_ message: JOSEMessage, authenticating authenticated: [UInt8]) throws(Refusal) {
    guard let name = message.header["enc"]?.text else { throw Refusal(reason: "enc") }
    (self.message, self.authenticated, encryption) = (message, authenticated, name)
  }

  /// Whether the algorithm is one that Holdfast leaves out on purpose: RSA1_5, whose padding can be guessed from a recipient's answers,
  /// and those with passwords. Source: RFC 8017 §7.2, RFC 8725 §3.2.
  var isLeftOut: Bool { algorithm == "RSA1_5" || algorithm.hasPrefix("PBES2-") }

  /// The algorithm or the type of key that Holdfast does not have; nil for none.
  var missing: String? {
    if algorithm.hasPrefix("HPKE-") { return "alg \(algorithm)" }
    if ["C20P", "XC20P"].contains(encryption) { return "enc \(encryption)" }
    return message.header["epk"].flatMap(JOSEKeys.missing)
  }

  /// Whether the message is for a key: whether both have the same `kid`, or, if one has none, there is no other recipient.
  func isFor(_ key: JSONValue, isOnly: Bool) -> Bool { message.isFor(key, isOnly: isOnly) }

  /// The member `alg`.
  var algorithm: String { message.algorithm }

  /// Returns the key of a set that this message can mean, if that key is for its `alg` and `enc`.
  func key(in keys: JOSEKeys) throws(Refusal) -> JSONValue {
    let key = try keys.key(for: message, purpose: .encryption)
    // The key of `dir` is that of the content encryption.
    let names = algorithm == "dir" ? ["dir", encryption] : [algorithm]
    guard key.isKey(forAny: names) else { throw Refusal(reason: "key for another alg") }
    guard key["enc"] == nil || key["enc"]?.text == encryption else { throw Refusal(reason: "key for another enc") }
    return key
  }

  /// Returns the plaintext.
  func open(with key: JSONValue) throws(Refusal) -> [UInt8] {
    let compression = message.header["zip"]
    guard compression == nil || compression?.text == "DEF" else { throw Refusal(reason: "zip") }
    let plaintext: [UInt8]
    do throws(JOSEFault) {
      var opener = try JWEKey(parsing: configured(key).span)
      let type = message.header["cty"]?.text ?? ""
      if let text {
        let opened = try opener.open(text.span, contentType: type, acceptsCompressed: compression != nil)
        plaintext = [UInt8](opened.bytes)
      } else {
        let header = try HeaderParameters(message.header, acceptsCompressed: compression != nil)
        let opened = try opener.open(
          header: header, contentType: type, parts: message.texts, authenticating: authenticated)
        plaintext = [UInt8](opened.bytes)
      }
    } catch { throw Refusal(error) }
    guard compression != nil else { return plaintext }
    guard let inflated = Inflation.inflate(plaintext, limit: 1 << 20) else { throw Refusal(reason: "zip") }
    return inflated
  }

  /// Returns the key with the algorithms of the message, for which it was checked. A recipient's key names them itself.
  private func configured(_ key: JSONValue) -> [UInt8] {
    let members = (key.members ?? []).filter { name, _ in name != "alg" && name != "enc" }
    return JSONValue.object(members + [("alg", .string(algorithm)), ("enc", .string(encryption))]).compact()
  }
}

extension Refusal {
  fileprivate init(_ fault: JOSEFault) {
    switch fault {
    case .malformed: self.init(reason: "it is malformed")
    case .unexpected: self.init(reason: "its header, its parts or the key do not fit")
    case .refused: self.init(reason: "a parameter that is never supported")
    case .cryptography: self.init(reason: "it does not decrypt")
    }
  }
}
