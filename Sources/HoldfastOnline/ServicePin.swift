import HoldfastCore

/// A pin of a public key in a service's chain of certificates, as libcurl writes it: `sha256//` and the padded base64 of SHA-256 over
/// the SubjectPublicKeyInfo.
///
/// Source: CURLOPT_PINNEDPUBLICKEY(3), RFC 7469 §2.4.
package struct ServicePin: Sendable, Equatable, CustomStringConvertible {
  /// The pin as it was given.
  package let description: String

  /// The digest of the key, 32 bytes.
  package let digest: [UInt8]

  private static let prefix = "sha256//"
  /// The maximum number of pins of a service.
  package static let countLimit = 8

  /// Parses a pin; nil for anything else.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.prefix) else { return nil }
    let encoded = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
    var digest = ByteBuffer<64>()
    do throws(EncodingFault) { try digest.append(paddedBase64: encoded.span) } catch { return nil }
    guard digest.count == 32 else { return nil }
    (description, self.digest) = (text, [UInt8](digest.bytes))
  }
}
