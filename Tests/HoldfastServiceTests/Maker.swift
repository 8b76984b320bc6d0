import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport

/// A maker of apps or devices with a key.
final class Maker {
  private var key: P256PrivateKey
  let pem: [UInt8]
  let id: KeyID
  var point: P256Point { key.publicPoint }

  init() throws {
    let key = try P256PrivateKey()
    let point = key.publicPoint
    let base64 = SubjectPublicKeyInfo.base64(of: point)
    pem = Array("-----BEGIN PUBLIC KEY-----\n\(base64)\n-----END PUBLIC KEY-----\n".utf8)
    var cryptography = OpenSSLCryptography()
    id = try keyID(of: point, using: &cryptography)
    self.key = key
  }

  /// Signs a text as `openssl dgst -sha256 -sign` does.
  func signature(_ text: String) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    let bytes = Array(text.utf8)
    hash.append(bytes.span)
    let signed = try key.sign(hash.finish())
    let raw = [UInt8](signed.bytes)
    let numbers = [Array(raw[..<32]), Array(raw[32...])].flatMap { number in
      var shortest = Array(number.drop { $0 == 0 })
      if shortest.first ?? 0x80 >= 0x80 { shortest.insert(0, at: 0) }
      return [0x02, UInt8(shortest.count)] + shortest
    }
    return [0x30, UInt8(numbers.count)] + numbers
  }

  func members(_ text: String) throws -> [(String, JSONValue)] {
    var encoded: [UInt8] = []
    let bytes = try signature(text)
    encoded.append(asPaddedBase64: bytes.span)
    return [
      ("manifest", .string(text)), ("signature", .string(String(decoding: encoded, as: UTF8.self))),
      ("maker_key", .string(String(decoding: pem, as: UTF8.self))),
    ]
  }
}
