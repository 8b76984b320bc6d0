import HoldfastCore
import HoldfastOpenSSL

/// A parsed JSON Web Key: public, private or symmetric. Its numbers are wiped when it is destroyed.
///
/// Source: RFC 7517 §4, RFC 7518 §6. Unknown members are ignored.
struct JWK: ~Copyable {
  enum KeyType { case elliptic, rsa, octets }

  var type: KeyType?
  var curve: NISTCurve?
  /// The members `kid`, `alg` and `enc`. RFC 7517 does not define `enc`; it names the content encryption of the key.
  var keyID: String?
  var algorithm: String?
  var encryption: String?
  var x, y, d: SecretBytes?
  var n, e, p, q, dp, dq, qi: SecretBytes?
  var k: SecretBytes?

  private init() {}

  /// Reads one key at the reader's position.
  ///
  /// - Throws: `malformed` for bad JSON or base64url, `unexpected` for an unknown type or curve.
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

  /// Parses `json`, which holds exactly one key.
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

  /// The name of the curve in a JWK. Source: RFC 7518 §6.2.1.1.
  var jwkName: String {
    switch self {
    case .p256: "P-256"
    case .p384: "P-384"
    case .p521: "P-521"
    }
  }
}

/// Returns a text of at most 255 bytes.
func plainText(_ string: borrowing JSONString) throws(EncodingFault) -> String {
  guard let text: BoundedText<255> = string.bounded() else { throw .tooLong }
  return text.description
}

/// Decodes a base64url string of at most 768 bytes.
private func number(_ string: borrowing JSONString) throws(EncodingFault) -> SecretBytes {
  var text = ByteBuffer<1024>()
  try string.unescape(into: &text)
  return try decodeBase64URL(text.bytes)
}

extension JWK {
  /// Returns the public point of an elliptic-curve key after checking that it is on its curve.
  ///
  /// - Throws: `unexpected` for another kind of key.
  borrowing func publicPoint() throws(JOSEFault) -> [UInt8] {
    guard type == .elliptic, let curve else { throw .unexpected }
    var point: [UInt8] = [4]
    try withBytes(of: x, count: curve.coordinateByteCount) { point.append($0) }
    try withBytes(of: y, count: curve.coordinateByteCount) { point.append($0) }
    do throws(CryptographyFailure) { try checkPoint(point.span, on: curve) } catch { throw .cryptography }
    return point
  }

  /// Returns the private key of an elliptic-curve key.
  ///
  /// - Throws: `unexpected` if there is none, or if the public point belongs to another key.
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

  /// Returns the private key of an RSA key, with its primes.
  ///
  /// - Throws: `unexpected` if there is none; `cryptography` if its parts do not match or it has fewer than 2048 bits.
  consuming func rsaPrivateKey() throws(JOSEFault) -> RSAPrivateKey {
    guard type == .rsa, let n, let e, let d, let p, let q, let dp, let dq, let qi else { throw .unexpected }
    let components = RSAPrivateKey.Components(
      modulus: [UInt8](copying: n.bytes), publicExponent: [UInt8](copying: e.bytes), privateExponent: d,
      firstPrime: p, secondPrime: q, firstExponent: dp, secondExponent: dq, coefficient: qi)
    do throws(CryptographyFailure) { return try RSAPrivateKey(components) } catch { throw .cryptography }
  }

  /// Returns the bytes of a symmetric key.
  ///
  /// - Throws: `unexpected` for another kind of key.
  consuming func octets() throws(JOSEFault) -> SecretBytes {
    guard type == .octets, let k else { throw .unexpected }
    return k
  }
}

/// Lends the bytes of a number to `body`.
///
/// - Throws: `unexpected` unless the number is present and has `count` bytes.
private func withBytes<Result: ~Copyable>(
  of number: borrowing SecretBytes?, count: Int, _ body: (Span<UInt8>) throws(JOSEFault) -> Result
) throws(JOSEFault) -> Result {
  switch number {
  case .some(let number) where number.count == count: return try body(number.bytes)
  default: throw .unexpected
  }
}
