import HoldfastCore
import HoldfastOpenSSL

/// A JSON Web Key as it was read: public, private or symmetric. Its numbers wipe themselves.
///
/// Source: RFC 7517 §4, RFC 7518 §6. Members that it does not know are ignored.
struct JWK: ~Copyable {
  enum KeyType { case elliptic, rsa, octets }

  var type: KeyType?
  var curve: NISTCurve?
  /// `kid`, `alg` and `enc`; `enc` is no member of RFC 7517, but names what the key opens.
  var keyID: String?
  var algorithm: String?
  var encryption: String?
  var x, y, d: SecretBytes?
  var n, e, p, q, dp, dq, qi: SecretBytes?
  var k: SecretBytes?

  private init() {}

  /// Reads one key where the reader stands; `malformed` for bad JSON or base64url, `unexpected` for an unknown type or curve.
  static func read(_ reader: inout JSONReader) throws(EncodingFault) -> JWK {
    var key = JWK()
    var object = try reader.beginObject()
    while let name = try reader.nextMember(&object) {
      if try key.readName(name, from: &reader) { continue }
      if try key.readNumber(name, from: &reader) { continue }
      try reader.skipValue()
    }
    guard let type = key.type, (type == .elliptic) == (key.curve != nil) else { throw .unexpected }
    return key
  }

  /// Reads one key that is all of `json`.
  static func parse(_ json: Span<UInt8>) throws(EncodingFault) -> JWK {
    var reader = try JSONReader(json)
    let key = try read(&reader)
    try reader.finish()
    return key
  }

  private mutating func readName(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) -> Bool {
    if name.equals("kty") {
      type = try KeyType(reader.string())
    } else if name.equals("crv") {
      curve = try NISTCurve(reader.string())
    } else if name.equals("kid") {
      keyID = try plainText(reader.string())
    } else if name.equals("alg") {
      algorithm = try plainText(reader.string())
    } else if name.equals("enc") {
      encryption = try plainText(reader.string())
    } else {
      return false
    }
    return true
  }

  private mutating func readNumber(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) -> Bool {
    if name.equals("x") {
      x = try number(reader.string())
    } else if name.equals("y") {
      y = try number(reader.string())
    } else if name.equals("d") {
      d = try number(reader.string())
    } else if name.equals("n") {
      n = try number(reader.string())
    } else if name.equals("e") {
      e = try number(reader.string())
    } else if name.equals("p") {
      p = try number(reader.string())
    } else if name.equals("q") {
      q = try number(reader.string())
    } else if name.equals("dp") {
      dp = try number(reader.string())
    } else if name.equals("dq") {
      dq = try number(reader.string())
    } else if name.equals("qi") {
      qi = try number(reader.string())
    } else if name.equals("k") {
      k = try number(reader.string())
    } else {
      return false
    }
    return true
  }
}

extension JWK.KeyType {
  fileprivate init(_ name: borrowing JSONString) throws(EncodingFault) {
    if name.equals("EC") {
      self = .elliptic
    } else if name.equals("RSA") {
      self = .rsa
    } else if name.equals("oct") {
      self = .octets
    } else {
      throw .unexpected
    }
  }
}

extension NISTCurve {
  fileprivate init(_ name: borrowing JSONString) throws(EncodingFault) {
    if name.equals("P-256") {
      self = .p256
    } else if name.equals("P-384") {
      self = .p384
    } else if name.equals("P-521") {
      self = .p521
    } else {
      throw .unexpected
    }
  }

  /// The curve's name in a JWK. Source: RFC 7518 §6.2.1.1.
  var jwkName: String {
    switch self {
    case .p256: "P-256"
    case .p384: "P-384"
    case .p521: "P-521"
    }
  }
}

/// A text of at most 255 bytes.
func plainText(_ string: borrowing JSONString) throws(EncodingFault) -> String {
  guard let text: BoundedText<255> = string.bounded() else { throw .tooLong }
  return text.description
}

/// The bytes of a base64url string, at most 768.
private func number(_ string: borrowing JSONString) throws(EncodingFault) -> SecretBytes {
  var text = ByteBuffer<1024>()
  try string.unescape(into: &text)
  return try decodeBase64URL(text.bytes)
}
