import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport

/// A signer whose key the corpora name, so that the fuzzer's bytes get past the check of a signature.
enum Signer {
  /// The public half of the private key 1: the base point of P-256.
  static let point = key.publicPoint
  private nonisolated(unsafe) static var key = try! P256PrivateKey(
    scalar: secret([UInt8](repeating: 0, count: 31) + [1]))

  /// Returns a compact JWS (ES256) over any bytes, with a header of `alg`, `kid` and `typ`. After the byte 0xff, which begins no JSON, the
  /// header comes first, up to a zero.
  static func sign(_ payload: [UInt8], type: String) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var header = JSONValue.object([
      ("alg", .string("ES256")), ("kid", .string(base64URL(try keyID(of: point, using: &cryptography).bytes))),
      ("typ", .string(type)),
    ]).compact()
    var payload = payload
    if payload.first == 0xff, let end = payload.firstIndex(of: 0) {
      header = Array(payload[1..<end])
      payload.removeFirst(end + 1)
    }
    var text: [UInt8] = []
    text.append(asBase64URL: header.span)
    text.append(0x2e)
    text.append(asBase64URL: payload.span)
    var hash = cryptography.sha256()
    hash.append(text.span)
    let signature = try key.sign(try hash.finish())
    text.append(0x2e)
    text.append(asBase64URL: signature.bytes)
    return text
  }

  /// Returns the signature over a digest, r ‖ s.
  static func signature(of digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> { try key.sign(digest) }

  /// Returns the signature over any bytes in DER, as makers sign files.
  static func signature(over text: [UInt8]) throws -> [UInt8] {
    var hash = SHA256Stream()
    hash.append(text.span)
    let signature = [UInt8](try key.sign(try hash.finish()).bytes)
    var numbers: [UInt8] = []
    for half in [signature[..<32], signature[32...]] {
      var number = Array(half.drop { $0 == 0 })
      if number.isEmpty || number[0] >= 0x80 { number.insert(0, at: 0) }
      numbers += [0x02, UInt8(number.count)] + number
    }
    return [0x30, UInt8(numbers.count)] + numbers
  }
}
