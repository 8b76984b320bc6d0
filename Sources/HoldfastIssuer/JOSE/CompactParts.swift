import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The parts of a compact serialisation.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
struct CompactParts: ~Escapable {
  private let text: Span<UInt8>
  private let dots: [Int]

  /// Splits `text` at its dots.
  ///
  /// - Throws: `malformed` unless there are exactly `count` parts.
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

  /// The bytes before the last dot, which a JWS signs.
  var signingInput: Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting(0..<dots[dots.count - 1]) }
  }
}

/// Decodes one part, which may be secret.
func decodePart(_ part: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
  do throws(EncodingFault) { return try decodeBase64URL(part) } catch { throw JOSEFault(error) }
}

/// The protected header of a JWS or JWE. It is read strictly, and unknown parameters are ignored, as the standards
/// require.
///
/// Source: RFC 7515 §4, RFC 7516 §4.
struct HeaderParameters {
  private let value: JSONValue

  /// The largest decoded header, in bytes.
  static let byteLimit = Limit.headerJOSE.linux

  /// The parameters with which a sender would choose keys, compression or extensions.
  private static let refused = ["zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64"]

  /// Reads a header from base64url.
  ///
  /// - Throws: `refused` for a parameter that is never supported, whatever its value.
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

  /// Checks that the parameter is present with this value.
  ///
  /// - Throws: `unexpected` otherwise.
  func require(_ name: String, _ expected: String) throws(JOSEFault) {
    guard let text = value[name]?.text, haveSameBytes(text, expected) else { throw .unexpected }
  }

  /// Checks that the parameter is absent or has this value.
  ///
  /// - Throws: `unexpected` otherwise.
  func permit(_ name: String, _ expected: String) throws(JOSEFault) {
    if value[name] != nil { try require(name, expected) }
  }

  /// Decodes a base64url parameter; returns nil if it is absent.
  func bytes(_ name: String) throws(JOSEFault) -> [UInt8]? {
    guard let parameter = value[name] else { return nil }
    guard let text = parameter.text else { throw .unexpected }
    do throws(EncodingFault) { return try decodePublicBase64URL(text) } catch { throw JOSEFault(error) }
  }

  /// Reads the ephemeral public key `epk`, a point on `curve`. Source: RFC 7518 §4.6.1.1.
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

/// The reasons why a JOSE object or key is refused.
package enum JOSEFault: Error, Equatable {
  /// The input is not a compact serialisation, strict base64url or strict JSON.
  case malformed
  /// The input is well-formed, but its header, parts or key do not match the configured key.
  case unexpected
  /// The input requires a feature that is never supported: `zip`, `crit`, or a key chosen by the sender.
  case refused
  /// Decryption, verification or libcrypto failed. The case deliberately states no reason.
  case cryptography

  init(_ fault: EncodingFault) {
    self = fault == .unexpected ? .unexpected : .malformed
  }
}

/// Decodes base64url text without padding, at most 6144 bytes, which may be secret.
func decodeBase64URL(_ text: Span<UInt8>) throws(EncodingFault) -> SecretBytes {
  var buffer = ByteBuffer<6144>()
  try buffer.append(base64URL: text)
  return SecretBytes(copying: buffer.bytes)
}

/// Decodes base64url text without padding. The bytes are public.
func decodePublicBase64URL(_ text: String) throws(EncodingFault) -> [UInt8] {
  let utf8 = Array(text.utf8)
  let bytes = try decodeBase64URL(utf8.span)
  return [UInt8](copying: bytes.bytes)
}

/// Encodes public bytes as base64url without padding.
func base64URL(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes)
  return String(decoding: text, as: UTF8.self)
}

extension Array where Element == UInt8 {
  /// Copies `bytes`, which are not secret.
  init(copying bytes: Span<UInt8>) {
    self.init()
    append(bytes)
  }
}
