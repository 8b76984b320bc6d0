import HoldfastCore
import HoldfastOpenSSL

/// A parsed JSON Web Key: public, private or symmetric. Its numbers are wiped when it is destroyed.
///
/// It is the only reader of keys on Linux. The core reads the ephemeral key of a token itself, without heap memory
/// (`JOSEHeader`).
///
/// Source: RFC 7517 §4, RFC 7518 §6.
package struct JWK: ~Copyable {
  /// The kind of a key.
  package enum KeyType { case elliptic, rsa, octets }

  /// The member `kty`.
  package private(set) var type: KeyType?
  /// The member `crv`; nil unless the key is on a curve.
  package private(set) var curve: NISTCurve?
  /// The members `kid`, `alg` and `enc`. RFC 7517 does not define `enc`; it names the content encryption of the key.
  package private(set) var keyID: String?
  package private(set) var algorithm: String?
  package private(set) var encryption: String?
  /// The member `use`.
  package private(set) var use: String?
  private var x, y, d: SecretBytes?
  private var n, e, p, q, dp, dq, qi: SecretBytes?
  private var k: SecretBytes?

  private init() {}

  /// Parses `json`, which holds exactly one key.
  ///
  /// - Parameter members: The only members that it may have; if nil, unknown ones are ignored, as RFC 7517 §4 requires.
  /// - Throws: `malformed` for bad JSON or base64url, `unexpected` for an unknown type or curve, or another member.
  package static func parse(_ json: Span<UInt8>, only members: [StaticString]? = nil) throws(KeyFault) -> JWK {
    do throws(EncodingFault) {
      var reader = try JSONReader(json)
      let key = try read(&reader, only: members)
      try reader.finish()
      return key
    } catch { throw error == .unexpected ? .unexpected : .malformed }
  }

  /// Reads the public key on an elliptic curve in `value`. Its other members are ignored.
  ///
  /// - Throws: `privateKey` if it has `d`, otherwise `unexpected`.
  package static func publicKey(in value: JSONValue) throws(KeyFault) -> JWK {
    guard let members = value.members else { throw .unexpected }
    guard !members.contains(where: { haveSameBytes($0.0, "d") }) else { throw .privateKey }
    let names = ["kty", "crv", "x", "y"]
    let wanted = members.filter { member in names.contains { haveSameBytes($0, member.0) } }
    let key: JWK
    do throws(KeyFault) { key = try parse(JSONValue.object(wanted).compact().span) } catch { throw .unexpected }
    guard key.type == .elliptic else { throw .unexpected }
    return key
  }

  private static func read(_ reader: inout JSONReader, only members: [StaticString]?) throws(EncodingFault) -> JWK {
    var key = JWK()
    var object = try reader.beginObject()
    while let name = try reader.nextMember(&object) {
      if let members, !isAny(name, of: members) { throw .unexpected }
      if try key.readName(name, from: &reader) { continue }
      if try key.readNumber(name, from: &reader) { continue }
      try reader.skipValue()
    }
    guard let type = key.type, (type == .elliptic) == (key.curve != nil) else { throw .unexpected }
    return key
  }

  private static func isAny(_ name: borrowing JSONString, of members: [StaticString]) -> Bool {
    for member in members where name.equals(member) { return true }
    return false
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
    } else if name.equals("use") {
      use = try plainText(reader.string())
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
  package var jwkName: String {
    switch self {
    case .p256: "P-256"
    case .p384: "P-384"
    case .p521: "P-521"
    }
  }
}

/// Returns a text of at most 255 bytes.
private func plainText(_ string: borrowing JSONString) throws(EncodingFault) -> String {
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
  /// Returns the public point of an elliptic-curve key in SEC1 uncompressed form after checking that it is on its curve.
  ///
  /// - Throws: `unexpected` for another kind of key or a number of another length, `notOnCurve`.
  package borrowing func publicPoint() throws(KeyFault) -> [UInt8] {
    guard type == .elliptic, let curve else { throw .unexpected }
    var point: [UInt8] = [4]
    try withBytes(of: x, count: curve.coordinateByteCount) { point.append($0) }
    try withBytes(of: y, count: curve.coordinateByteCount) { point.append($0) }
    do throws(CryptographyFailure) { try checkPoint(point.span, on: curve) } catch { throw .notOnCurve }
    return point
  }

  /// Returns the private key of an elliptic-curve key.
  ///
  /// - Throws: `unexpected` if there is none; `notOnCurve` if the public point belongs to another key.
  package borrowing func ellipticPrivateKey() throws(KeyFault) -> ECPrivateKey {
    let point = try publicPoint()
    guard let curve else { throw .unexpected }
    let key = try withBytes(of: d, count: curve.coordinateByteCount) { (scalar) throws(KeyFault) in
      do throws(CryptographyFailure) {
        return try ECPrivateKey(curve: curve, scalar: scalar)
      } catch { throw .notOnCurve }
    }
    guard key.publicPoint == point else { throw .notOnCurve }
    return key
  }

  /// Returns the scalar of a private key on P-256.
  ///
  /// - Throws: as ``ellipticPrivateKey()``, and `unexpected` for another curve.
  package borrowing func p256Scalar() throws(KeyFault) -> Secret<32> {
    guard curve == .p256 else { throw .unexpected }
    _ = try ellipticPrivateKey()
    return try withBytes(of: d, count: 32) { (scalar) throws(KeyFault) in
      guard let scalar = Secret<32>(copying: scalar) else { throw .unexpected }
      return scalar
    }
  }

  /// Returns the private key of an RSA key, with its primes.
  ///
  /// - Throws: `unexpected` if there is none; `notOnCurve` if its parts do not match or it has fewer than 2048 bits.
  package consuming func rsaPrivateKey() throws(KeyFault) -> RSAPrivateKey {
    guard type == .rsa, let n, let e, let d, let p, let q, let dp, let dq, let qi else { throw .unexpected }
    let components = RSAPrivateKey.Components(
      modulus: [UInt8](n.bytes), publicExponent: [UInt8](e.bytes), privateExponent: d,
      firstPrime: p, secondPrime: q, firstExponent: dp, secondExponent: dq, coefficient: qi)
    do throws(CryptographyFailure) { return try RSAPrivateKey(components) } catch { throw .notOnCurve }
  }

  /// Returns the bytes of a symmetric key.
  ///
  /// - Throws: `unexpected` for another kind of key.
  package consuming func octets() throws(KeyFault) -> SecretBytes {
    guard type == .octets, let k else { throw .unexpected }
    return k
  }
}

/// Lends the bytes of a number to `body`.
///
/// - Throws: `unexpected` unless the number is present and has `count` bytes.
private func withBytes<Result: ~Copyable>(
  of number: borrowing SecretBytes?, count: Int, _ body: (Span<UInt8>) throws(KeyFault) -> Result
) throws(KeyFault) -> Result {
  switch number {
  case .some(let number) where number.count == count: return try body(number.bytes)
  default: throw .unexpected
  }
}

/// Returns the public JWK of a SEC1 uncompressed point. Source: RFC 7518 §6.2.1.
package func publicJWK(curve: NISTCurve, point: [UInt8]) -> JSONValue {
  let coordinates = point.span.extracting(droppingFirst: 1)
  let count = curve.coordinateByteCount
  return .object([
    ("kty", .string("EC")), ("crv", .string(curve.jwkName)),
    ("x", .string(base64URL(coordinates.extracting(first: count)))),
    ("y", .string(base64URL(coordinates.extracting(last: count)))),
  ])
}

/// A reason why a key was rejected.
public enum KeyFault: Error, Equatable {
  /// The text is not strict JSON, or is too long.
  case malformed
  /// The text is strict JSON, but not such a key: a member is missing or has another kind or length.
  case unexpected
  /// The key is a private one where a public one is required: a private key must not be passed on.
  case privateKey
  /// The numbers are no key: the point is not on the curve, or they do not belong together.
  case notOnCurve
}
