import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// Splits a compact serialisation at its dots.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
/// - Throws: `malformed` unless there are exactly `count` parts.
@_lifetime(copy token)
func splitCompact<let count: Int>(_ token: Span<UInt8>) throws(JOSEFault) -> CompactJOSE<count> {
  do throws(EncodingFault) { return try CompactJOSE<count>(token) } catch { throw .malformed }
}

/// Decodes one part, which may be secret.
func decodePart(_ part: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
  do throws(EncodingFault) { return try decodeBase64URL(part) } catch { throw JOSEFault(error) }
}

/// The protected header of a JWS or JWE. It is read strictly, and unknown parameters are ignored, as the standards
/// require.
///
/// Source: RFC 7515 §4, RFC 7516 §4.
package struct HeaderParameters {
  private let value: JSONValue

  /// The largest decoded header, in bytes.
  static let byteLimit = Limit.headerJOSE.linux

  /// The parameters with which a sender would choose keys, compression or extensions.
  private static let refused = ["zip", "crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64"]

  /// Reads a header from base64url.
  ///
  /// - Parameter acceptsCompressed: whether `zip` may be there, which is for test vectors only.
  /// - Throws: `refused` for a parameter that is never supported, whatever its value.
  init(_ encoded: Span<UInt8>, acceptsCompressed: Bool = false) throws(JOSEFault) {
    let parsed: JSONValue
    do throws(EncodingFault) {
      guard encoded.count <= (Self.byteLimit * 4 + 2) / 3 else { throw .tooLong }
      let bytes = try decodeBase64URL(encoded)
      do throws(JSONFault) {
        parsed = try JSONValue(parsing: bytes.bytes, byteLimit: Self.byteLimit)
      } catch {
        throw .malformed
      }
    } catch { throw JOSEFault(error) }
    try self.init(parsed, acceptsCompressed: acceptsCompressed)
  }

  /// Takes a header that was parsed, the union of several for a message in JSON.
  ///
  /// - Throws: as for one in base64url.
  package init(_ value: JSONValue, acceptsCompressed: Bool = false) throws(JOSEFault) {
    self.value = value
    guard value.members != nil else { throw .unexpected }
    for name in Self.refused where value[name] != nil && !(acceptsCompressed && name == "zip") { throw .refused }
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
    guard let value = value["epk"] else { throw .unexpected }
    do throws(KeyFault) {
      let key = try JWK.publicKey(in: value)
      guard key.curve == curve else { throw .unexpected }
      return try key.publicPoint()
    } catch { throw JOSEFault(error) }
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

  init(_ fault: KeyFault) {
    self =
      switch fault {
      case .malformed: .malformed
      case .unexpected, .privateKey: .unexpected
      case .notOnCurve: .cryptography
      }
  }
}
