import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

/// A P-256 public key as a JWK: an issuer's, or a device's.
///
/// Source: RFC 7517 §4, RFC 7518 §6.2.1.
public struct PublicKeyJWK: Sendable, Equatable {
  /// The longest JWK that is read, in bytes.
  public static let maximumByteCount = 4096

  public let point: P256Point

  /// `point` must be on the curve.
  public init(point: P256Point) {
    self.point = point
  }

  /// Reads a JWK.
  public init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch { throw .malformed }
    try self.init(value)
  }

  /// Reads `kty`, `crv`, `x` and `y`; other members are ignored as RFC 7517 §4 asks, but a private key is refused.
  public init(_ value: JSONValue) throws(KeyFault) {
    guard let members = value.members else { throw .unexpected }
    guard !members.contains(where: { haveSameBytes($0.0, "d") }) else { throw .privateKey }
    guard value["kty"]?.text == "EC", value["crv"]?.text == "P-256", let x = coordinate(value["x"]),
      let y = coordinate(value["y"])
    else { throw .unexpected }
    point = P256Point(x: x, y: y)
    do throws(CryptographyFailure) { try checkIsOnCurve(point) } catch { throw .notOnCurve }
  }

  /// The JWK, its required members alone.
  public var json: JSONValue {
    .object([
      ("kty", .string("EC")), ("crv", .string("P-256")),
      ("x", .string(base64URL(point.x))), ("y", .string(base64URL(point.y))),
    ])
  }
}

/// Why a key could not be taken.
public enum KeyFault: Error, Equatable {
  /// Not strict JSON, or too long.
  case malformed
  /// Strict JSON, but not such a key: a member is missing or of another kind or length.
  case unexpected
  /// A private key where a public one belongs: nobody should hand it out.
  case privateKey
  /// Not a point on the curve, or not the public half of the private key.
  case notOnCurve
}

/// An agreement with a key made for this alone: libcrypto refuses every point that is not on the curve.
private func checkIsOnCurve(_ point: P256Point) throws(CryptographyFailure) {
  var key = try P256PrivateKey()
  var shared = Secret<32>()
  try key.agree(with: point, into: &shared)
}

private func coordinate(_ value: JSONValue?) -> FixedBytes<32>? {
  guard let text = value?.text else { return nil }
  let utf8 = Array(text.utf8)
  var bytes = ByteBuffer<32>()
  do throws(EncodingFault) { try bytes.append(base64URL: utf8.span) } catch { return nil }
  return FixedBytes<32>(bytes.bytes)
}

/// Public bytes as base64url text without padding.
private func base64URL<let count: Int>(_ bytes: FixedBytes<count>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes.bytes)
  return String(decoding: text, as: UTF8.self)
}
