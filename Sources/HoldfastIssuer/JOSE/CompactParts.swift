import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A compact serialisation split at its dots.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
struct CompactParts: ~Escapable {
  private let text: Span<UInt8>
  private let dots: [Int]

  /// `malformed` unless there are exactly `count` parts.
  @_lifetime(copy text)
  init(_ text: Span<UInt8>, count: Int) throws(JOSEFault) {
    var dots: [Int] = []
    for index in text.indices where text[index] == UInt8(ascii: ".") {
      guard dots.count < count else { throw .malformed }
      dots.append(index)
    }
    guard dots.count == count - 1 else { throw .malformed }
    self.text = text
    self.dots = dots
  }

  subscript(part: Int) -> Span<UInt8> {
    @_lifetime(copy self)
    get {
      let start = part == 0 ? 0 : dots[part - 1] + 1
      return text.extracting(start..<(part == dots.count ? text.count : dots[part]))
    }
  }

  /// Everything before the last dot: what a JWS signs.
  var signingInput: Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting(0..<dots[dots.count - 1]) }
  }
}

/// The bytes of one part, which may be secret.
func decodePart(_ part: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
  do throws(EncodingFault) { return try decodeBase64URL(part) } catch { throw JOSEFault(error) }
}

/// The protected header of a JWS or JWE, read strictly; what it does not know it ignores, as the standards ask.
///
/// Source: RFC 7515 §4, RFC 7516 §4.
struct HeaderParameters {
  private let value: JSONValue

  /// The most bytes of a decoded header.
  static let byteLimit = 1024

  /// Parameters by which a sender would choose keys, compression or extensions.
  private static let refused = ["zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64"]

  /// Reads a header from base64url; throws `refused` for what is never done, whatever its value.
  init(_ encoded: Span<UInt8>) throws(JOSEFault) {
    do throws(EncodingFault) {
      guard encoded.count <= (Self.byteLimit * 4 + 2) / 3 else { throw .tooLong }
      let bytes = try decodeBase64URL(encoded)
      do throws(JSONFault) {
        value = try JSONValue(parsing: bytes.bytes, byteLimit: Self.byteLimit)
      } catch {
        throw .malformed
      }
    } catch { throw JOSEFault(error) }
    guard value.members != nil else { throw .unexpected }
    for name in Self.refused where value[name] != nil { throw .refused }
  }

  /// Throws `unexpected` unless the parameter is there, and is this text.
  func require(_ name: String, _ expected: String) throws(JOSEFault) {
    guard let text = value[name]?.text, haveSameBytes(text, expected) else { throw .unexpected }
  }

  /// Throws `unexpected` when the parameter is there, and is not this text.
  func permit(_ name: String, _ expected: String) throws(JOSEFault) {
    if value[name] != nil { try require(name, expected) }
  }

  /// The bytes of a base64url parameter; nil when it is absent.
  func bytes(_ name: String) throws(JOSEFault) -> [UInt8]? {
    guard let parameter = value[name] else { return nil }
    guard let text = parameter.text else { throw .unexpected }
    do throws(EncodingFault) { return try decodePublicBase64URL(text) } catch { throw JOSEFault(error) }
  }

  /// The ephemeral public key `epk`, a point on the curve that is named. Source: RFC 7518 §4.6.1.1.
  func ephemeralPoint(curve: NISTCurve) throws(JOSEFault) -> [UInt8] {
    guard let key = value["epk"], key["d"] == nil, key["kty"]?.text == "EC", key["crv"]?.text == curve.jwkName
    else { throw .unexpected }
    var point: [UInt8] = [4]
    for name in ["x", "y"] {
      guard let text = key[name]?.text else { throw .unexpected }
      do throws(EncodingFault) {
        let coordinate = try decodePublicBase64URL(text)
        guard coordinate.count == curve.coordinateByteCount else { throw .unexpected }
        point += coordinate
      } catch { throw JOSEFault(error) }
    }
    return point
  }
}

/// Why a JOSE object or key is refused.
package enum JOSEFault: Error, Equatable {
  /// Not a compact serialisation, not strict base64url or not strict JSON.
  case malformed
  /// Well-formed, but its header, its parts or its key are not what the configured key calls for.
  case unexpected
  /// It asks for what is never done: `zip`, `crit`, or a key that the sender chose.
  case refused
  /// It did not decrypt or verify, or libcrypto failed; opaque on purpose.
  case cryptography

  init(_ fault: EncodingFault) {
    self = fault == .unexpected ? .unexpected : .malformed
  }
}

/// The bytes of base64url text without padding, at most 6144; they may be secret.
func decodeBase64URL(_ text: Span<UInt8>) throws(EncodingFault) -> SecretBytes {
  var buffer = ByteBuffer<6144>()
  try buffer.append(base64URL: text)
  return SecretBytes(copying: buffer.bytes)
}

/// The public bytes of base64url text without padding.
func decodePublicBase64URL(_ text: String) throws(EncodingFault) -> [UInt8] {
  let utf8 = Array(text.utf8)
  let bytes = try decodeBase64URL(utf8.span)
  return [UInt8](copying: bytes.bytes)
}

/// Public bytes as base64url text without padding.
func base64URL(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes)
  return String(decoding: text, as: UTF8.self)
}

extension Array where Element == UInt8 {
  /// A copy of `bytes`, which are no secret.
  init(copying bytes: Span<UInt8>) {
    self.init()
    append(bytes)
  }
}
