import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

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
