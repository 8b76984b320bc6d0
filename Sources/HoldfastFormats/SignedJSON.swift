import HoldfastCore
import HoldfastOpenSSL

/// A JSON object under a P-256 signature: a compact JWS with ES256 whose header has exactly `alg`, `kid` and `typ`.
///
/// Source: RFC 7515 §7.1, RFC 7518 §3.4. The reader expects one key and one type; the header chooses nothing.
package enum SignedJSON {
  /// The reasons why a text is refused.
  package enum Fault: Error, Equatable {
    /// The text is not a compact JWS of strict JSON.
    case malformed
    /// The header names another algorithm, type or parameter.
    case unexpected
    /// The header names another key.
    case anotherKey
    /// The signature is wrong, or the cryptographic library failed.
    case notAuthentic
  }

  /// The largest text, in bytes.
  package static let maximumByteCount = 6144

  /// Signs an object.
  ///
  /// - Parameters:
  ///   - payload: the object.
  ///   - type: the value of `typ`.
  ///   - key: the key of the signer.
  /// - Returns: the text, in ASCII.
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  package static func sign(
    _ payload: JSONValue, type: String, with key: inout P256PrivateKey
  ) throws(CryptographyFailure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    let header = JSONValue.object([
      ("alg", .string("ES256")), ("kid", .string(base64URL(id.bytes))), ("typ", .string(type)),
    ])
    let (head, body) = (header.compact(), payload.compact())
    var text: [UInt8] = []
    text.append(asBase64URL: head.span)
    text.append(0x2e)
    text.append(asBase64URL: body.span)
    var hash = cryptography.sha256()
    hash.append(text.span)
    let signature = try key.sign(hash.finish())
    text.append(0x2e)
    text.append(asBase64URL: signature.bytes)
    return text
  }

  /// Checks the signature and returns the object.
  ///
  /// - Parameters:
  ///   - text: the compact JWS.
  ///   - type: the required value of `typ`.
  ///   - point: the key of the only signer that counts.
  ///   - byteLimit: the largest text, in bytes.
  /// - Throws: ``Fault``. Nothing of the payload is read before its signature was checked.
  package static func verify(
    _ text: [UInt8], type: String, by point: P256Point, byteLimit: Int = maximumByteCount
  ) throws(Fault) -> JSONValue {
    guard text.count <= byteLimit else { throw .malformed }
    let parts: (header: [UInt8], payload: [UInt8], signature: [UInt8], input: [UInt8])
    do throws(EncodingFault) { parts = try split(text) } catch { throw .malformed }
    let header = try value(parts.header)
    guard header.hasOnly(["alg", "kid", "typ"]), header["alg"] == .string("ES256"), header["typ"] == .string(type)
    else { throw .unexpected }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let id = try keyID(of: point, using: &cryptography)
      guard header["kid"] == .string(base64URL(id.bytes)) else { throw CryptographyFailure() }
    } catch { throw .anotherKey }
    do throws(CryptographyFailure) {
      let (bytes, input) = (parts.signature, parts.input)
      guard let signature = FixedBytes<64>(bytes.span) else { throw CryptographyFailure() }
      var hash = cryptography.sha256()
      hash.append(input.span)
      try cryptography.p256Verify(key: point, digest: hash.finish(), signature: signature)
    } catch { throw .notAuthentic }
    return try value(parts.payload)
  }

  private static func split(
    _ text: [UInt8]
  ) throws(EncodingFault) -> (header: [UInt8], payload: [UInt8], signature: [UInt8], input: [UInt8]) {
    let span = text.span
    let parts = try CompactJOSE<3>(span)
    return (
      try decodePublicBase64URL(parts[0]), try decodePublicBase64URL(parts[1]), try decodePublicBase64URL(parts[2]),
      [UInt8](parts.signingInput)
    )
  }

  private static func value(_ bytes: [UInt8]) throws(Fault) -> JSONValue {
    do throws(JSONFault) { return try JSONValue(parsing: bytes, byteLimit: bytes.count) } catch {
      throw .malformed
    }
  }
}
