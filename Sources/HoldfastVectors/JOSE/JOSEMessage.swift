import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A JWS or JWE in compact form, or one signature or recipient of one in JSON, split and decoded.
///
/// Base64url is strict: no padding, no other characters, no trailing bits. The header is strict JSON, without duplicate
/// members. Source: RFC 7515 §3 and §7, RFC 7516 §3 and §7.
struct JOSEMessage {
  /// The header: in JSON, the union of the protected header and the others.
  let header: JSONValue
  /// The member `alg`.
  let algorithm: String
  /// The parts after the header, decoded.
  let parts: [[UInt8]]
  /// The text of each part, the header first.
  let texts: [[UInt8]]

  /// Parses a message in compact form, of `partCount` parts.
  init(_ text: String, partCount: Int) throws(Refusal) {
    let texts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
    guard texts.count == partCount else { throw Refusal(reason: "\(texts.count) parts") }
    try self.init(texts, unprotected: [])
  }

  /// Decodes the parts of a message, the protected header first, which may be empty if there are other headers. No member may be in two
  /// headers. Source: RFC 7515 §7.2.1, RFC 7516 §7.2.1.
  init(_ texts: [[UInt8]], unprotected: [JSONValue]) throws(Refusal) {
    var decoded: [[UInt8]] = []
    for text in texts {
      do throws(EncodingFault) { decoded.append(try decodePublicBase64URL(text.span)) } catch {
        throw Refusal(reason: "base64url")
      }
    }
    var headers = unprotected
    if !decoded[0].isEmpty || unprotected.isEmpty {
      do throws(JSONFault) { headers.append(try JSONValue(parsing: decoded[0], byteLimit: 1 << 16)) } catch {
        throw Refusal(reason: "header")
      }
    }
    var union: [(String, JSONValue)] = []
    for one in headers {
      guard let members = one.members else { throw Refusal(reason: "header") }
      guard members.allSatisfy({ JSONValue.object(union)[$0.0] == nil }) else {
        throw Refusal(reason: "member in two headers")
      }
      union += members
    }
    header = .object(union)
    guard let algorithm = header["alg"]?.text else { throw Refusal(reason: "header without alg") }
    // No extension is implemented, and `b64` has to be named in `crit`. Source: RFC 7515 §4.1.11, RFC 7797 §6.
    guard header["crit"] == nil, header["b64"] == nil else { throw Refusal(reason: "crit") }
    self.algorithm = algorithm
    self.texts = texts
    parts = Array(decoded.dropFirst())
  }

  /// Whether the message and a key have the same `kid`; if one of them has none, `isOnly`.
  func isFor(_ key: JSONValue, isOnly: Bool) -> Bool {
    guard let own = header["kid"], let named = key["kid"] else { return isOnly }
    return own == named
  }

  /// The octets that a signature covers. Source: RFC 7515 §5.1.
  var signedOctets: [UInt8] { texts[0] + [UInt8(ascii: ".")] + texts[1] }

  /// Decodes the member of the header with a name; an absent one is nil.
  func headerBytes(_ name: String) throws(Refusal) -> [UInt8]? {
    guard let member = header[name] else { return nil }
    guard let text = member.text else { throw Refusal(reason: name) }
    do throws(EncodingFault) { return try decodePublicBase64URL(text) } catch { throw Refusal(reason: name) }
  }
}

/// A JSON Web Key, or the keys of a set. Source: RFC 7517 §4 and §5.
struct JOSEKeys {
  private let keys: [JSONValue]

  /// The purpose of a key.
  enum Purpose {
    case signature, encryption
  }

  /// Returns the type or the curve of a JSON Web Key, if Holdfast does not have it. Source: RFC 8037 §2, RFC 8812 §3.1.
  static func missing(_ key: JSONValue) -> String? {
    if key["kty"]?.text == "OKP" { return "a key of type OKP" }
    return key["crv"]?.text == "secp256k1" ? "curve secp256k1" : nil
  }

  init(_ value: JSONValue) {
    keys = value["keys"]?.elements ?? [value]
  }

  /// Returns the only key that a message can mean.
  ///
  /// A set that mixes secret and public keys is refused as a whole, because an attacker knows the public ones; so is a
  /// `kid` that occurs twice. Source: RFC 8725 §2.1 and §3.10.
  func key(for message: JOSEMessage, purpose: Purpose) throws(Refusal) -> JSONValue {
    let secretCount = keys.count { $0["kty"]?.text == "oct" }
    guard secretCount == 0 || secretCount == keys.count else {
      throw Refusal(reason: "secret and public keys in a set")
    }
    let wanted = message.header["kid"]
    let found = keys.filter { key in
      if let wanted, let own = key["kid"] { return own == wanted }
      return keys.count == 1
    }
    guard found.count == 1, let key = found.first else { throw Refusal(reason: "\(found.count) keys with that kid") }
    guard key.isFor(purpose) else { throw Refusal(reason: "key for another use") }
    return key
  }
}

extension JSONValue {
  /// Returns whether `use` and `key_ops`, each only if it is there, permit a purpose. Source: RFC 7517 §4.2 and §4.3.
  fileprivate func isFor(_ purpose: JOSEKeys.Purpose) -> Bool {
    let (use, operations) =
      switch purpose {
      case .signature: ("sig", ["verify"])
      case .encryption: ("enc", ["decrypt", "unwrapKey", "deriveKey", "deriveBits"])
      }
    if let own = self["use"], own.text != use { return false }
    guard let own = self["key_ops"] else { return true }
    return own.elements?.contains { element in operations.contains { $0 == element.text } } ?? false
  }

  /// Returns whether a key may be used with one of `algorithms`: whether it names one, or none at all.
  func isKey(forAny algorithms: [String]) -> Bool {
    guard let own = self["alg"] else { return true }
    // Keys in circulation name ES512 after its curve.
    let name = own.text == "ES521" ? "ES512" : own.text
    return algorithms.contains { $0 == name }
  }

  /// Parses this JSON Web Key strictly.
  func parsedKey() throws(Refusal) -> JWK {
    do throws(KeyFault) { return try JWK.parse(compact().span) } catch { throw Refusal(reason: "key is malformed") }
  }
}

extension JWK {
  /// Returns the bytes of a symmetric key, which are public in a vector.
  consuming func secretOctets() throws(Refusal) -> [UInt8] {
    do throws(KeyFault) {
      let secret = try octets()
      return [UInt8](secret.bytes)
    } catch { throw Refusal(reason: "key of another type") }
  }
}
