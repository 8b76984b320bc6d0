import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A JWT in the compact form of a JWS: three parts of base64url. Nobody has verified it yet.
///
/// Source: RFC 7515 §3.1, RFC 7519.
struct CompactJWT: Sendable {
  /// The text.
  let text: String
  /// The header, an object.
  let header: JSONValue
  /// The claims, an object.
  let claims: JSONValue
  /// The signature or MAC.
  let signature: [UInt8]
  /// The byte count of the signing input, which begins the text.
  private let inputByteCount: Int

  /// The maximum byte count of the text of a token.
  static let tokenByteLimit = 16_384

  /// Parses the text; nil for anything else, or for claims that are not strict JSON. Other numbers than integers become texts.
  init?(_ text: String, byteLimit: Int = tokenByteLimit) {
    let bytes = Array(text.utf8)
    guard bytes.count <= byteLimit else { return nil }
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = Self.decoded(parts[2]), !signature.isEmpty
    else { return nil }
    (self.text, self.header, self.claims, self.signature) = (text, header, claims, signature)
    inputByteCount = bytes.count - parts[2].count - 1
  }

  private static func object(_ part: ArraySlice<UInt8>) -> JSONValue? {
    guard let bytes = decoded(part),
      let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count, otherNumbers: .asText), value.members != nil
    else { return nil }
    return value
  }

  /// Decodes base64url in pieces, because the decoder takes at most 6144 bytes at once.
  private static func decoded(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = part
    repeat {
      let piece = Array(rest.prefix(4096))
      rest = rest.dropFirst(4096)
      guard let decoded = try? decodeBase64URL(piece.span) else { return nil }
      bytes += [UInt8](decoded.bytes)
    } while !rest.isEmpty
    return bytes
  }

  /// Returns whether the token has exactly the header of ES256 with this type, and the signature of that key.
  func isSigned(by key: P256Point, named id: KeyID, type: String) -> Bool {
    guard header.hasOnly(["alg", "kid", "typ"]), header["alg"]?.text == "ES256", header["typ"]?.text == type,
      header["kid"]?.text == base64URL(id.bytes), let signature = FixedBytes<64>(signature.span)
    else { return false }
    let input = Array(text.utf8.prefix(inputByteCount))
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(input.span)
    do throws(CryptographyFailure) {
      try cryptography.p256Verify(key: key, digest: hash.finish(), signature: signature)
      return true
    } catch { return false }
  }
}
