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

extension JWK {
  /// The public point of an elliptic key, checked to be on its curve. `unexpected` for another kind of key.
  borrowing func publicPoint() throws(JOSEFault) -> [UInt8] {
    guard type == .elliptic, let curve else { throw .unexpected }
    var point: [UInt8] = [4]
    try withBytes(of: x, count: curve.coordinateByteCount) { point.append($0) }
    try withBytes(of: y, count: curve.coordinateByteCount) { point.append($0) }
    do throws(CryptographyFailure) { try checkPoint(point.span, on: curve) } catch { throw .cryptography }
    return point
  }

  /// The private key of an elliptic key. `unexpected` without one, or when its public point is another one's.
  borrowing func ellipticPrivateKey() throws(JOSEFault) -> ECPrivateKey {
    let point = try publicPoint()
    guard let curve else { throw .unexpected }
    let key = try withBytes(of: d, count: curve.coordinateByteCount) { (scalar) throws(JOSEFault) in
      do throws(CryptographyFailure) {
        return try ECPrivateKey(curve: curve, scalar: scalar)
      } catch { throw .cryptography }
    }
    guard key.publicPoint == point else { throw .unexpected }
    return key
  }

  /// The private key of an RSA key, with its primes. `unexpected` without one; `cryptography` when its parts do not belong
  /// together or it has fewer than 2048 bits.
  consuming func rsaPrivateKey() throws(JOSEFault) -> RSAPrivateKey {
    guard type == .rsa, let n, let e, let d, let p, let q, let dp, let dq, let qi else { throw .unexpected }
    let components = RSAPrivateKey.Components(
      modulus: [UInt8](copying: n.bytes), publicExponent: [UInt8](copying: e.bytes), privateExponent: d,
      firstPrime: p, secondPrime: q, firstExponent: dp, secondExponent: dq, coefficient: qi)
    do throws(CryptographyFailure) { return try RSAPrivateKey(components) } catch { throw .cryptography }
  }

  /// The bytes of a symmetric key. `unexpected` for another kind of key.
  consuming func octets() throws(JOSEFault) -> SecretBytes {
    guard type == .octets, let k else { throw .unexpected }
    return k
  }
}

/// Lends the bytes of a number; `unexpected` unless it is there and has `count` of them.
private func withBytes<Result: ~Copyable>(
  of number: borrowing SecretBytes?, count: Int, _ body: (Span<UInt8>) throws(JOSEFault) -> Result
) throws(JOSEFault) -> Result {
  switch number {
  case .some(let number) where number.count == count: return try body(number.bytes)
  default: throw .unexpected
  }
}
