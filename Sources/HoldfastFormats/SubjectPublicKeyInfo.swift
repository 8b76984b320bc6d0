import HoldfastCore

/// A P-256 public key as other tools write it: a SubjectPublicKeyInfo, in DER or PEM.
///
/// Source: RFC 5280 §4.1.2.7, RFC 5480 §2.1.1 and §2.2, RFC 7468 §13.
package enum SubjectPublicKeyInfo {
  /// The algorithm (id-ecPublicKey), the curve (secp256r1), and the head of a bit string of an uncompressed point. Exactly one
  /// encoding of each key is DER.
  private static let head: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
  ]
  private static let (begin, end) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----")

  /// Reads a key of 91 bytes in DER, or one in PEM with nothing before it and only blank lines after it.
  ///
  /// - Returns: the key; nil if the bytes begin as neither.
  /// - Throws: `malformed` for PEM that is cut or not base64; `unexpected` for a key of another type or curve, a compressed point,
  ///   or more than the key; `notOnCurve`.
  package static func publicKey(_ bytes: [UInt8]) throws(KeyFault) -> PublicKeyJWK? {
    if bytes.starts(with: begin.utf8) { return try publicKey(der: try decoded(pem: bytes)) }
    // A SEQUENCE; neither JSON nor a blank begins with this byte.
    return bytes.first == 0x30 ? try publicKey(der: bytes) : nil
  }

  /// The base64 of the 91 bytes of a key in DER, with padding: 124 characters.
  package static func base64(of point: P256Point) -> String {
    paddedBase64(der(of: point))
  }

  /// The 91 bytes of a key in DER.
  package static func der(of point: P256Point) -> [UInt8] { head.dropLast() + [UInt8](point.bytes) }

  /// A key in PEM, with a line feed at the end of each line. Source: RFC 7468 §2.
  package static func pem(of point: P256Point) -> String {
    let text = base64(of: point)
    return "\(begin)\n\(text.prefix(64))\n\(text.dropFirst(64))\n\(end)\n"
  }

  /// Reads what ``base64(of:)`` writes; nil for anything else.
  package static func point(base64 text: String) -> P256Point? {
    var der = ByteBuffer<91>()
    guard (try? der.append(paddedBase64: Array(text.utf8).span)) != nil else { return nil }
    return try? publicKey(der: [UInt8](der.bytes)).point
  }

  private static func publicKey(der: [UInt8]) throws(KeyFault) -> PublicKeyJWK {
    guard der.count == head.count + 64, der.starts(with: head),
      let x = FixedBytes<32>(der.span.extracting(27..<59)), let y = FixedBytes<32>(der.span.extracting(59..<91))
    else { throw .unexpected }
    // Read again as a JWK, which checks the point.
    return try PublicKeyJWK(PublicKeyJWK(point: P256Point(x: x, y: y)).json)
  }

  private static func decoded(pem: [UInt8]) throws(KeyFault) -> [UInt8] {
    let lines = pem.split(separator: 0x0a, omittingEmptySubsequences: false).map { line in
      line.last == 0x0d ? line.dropLast() : line
    }
    guard let last = lines.firstIndex(where: { $0.elementsEqual(end.utf8) }), lines[0].elementsEqual(begin.utf8),
      lines[(last + 1)...].allSatisfy(\.isEmpty)
    else { throw .malformed }
    let text = Array(lines[1..<last].joined())
    var der = ByteBuffer<192>()
    do throws(EncodingFault) { try der.append(paddedBase64: text.span) } catch { throw .malformed }
    return [UInt8](der.bytes)
  }
}
