import HoldfastCore
import HoldfastOpenSSL

/// The key itself, of one of three kinds.
enum JWEKeyMaterial: ~Copyable {
  case octets(SecretBytes)
  case rsa(RSAPrivateKey)
  case elliptic(ECPrivateKey)

  var isRSA: Bool {
    switch self {
    case .rsa: true
    default: false
    }
  }

  /// The bytes of a symmetric key; nil for another kind.
  var octetCount: Int? {
    switch self {
    case .octets(let key): key.count
    default: nil
    }
  }

  /// The curve of an elliptic key; nil for another kind.
  var curve: NISTCurve? {
    switch self {
    case .elliptic(let key): key.curve
    default: nil
    }
  }

  /// Lends a symmetric key.
  borrowing func withOctets<Result: ~Copyable>(
    _ body: (Span<UInt8>) throws(JOSEFault) -> Result
  ) throws(JOSEFault) -> Result {
    switch self {
    case .octets(let key): return try body(key.bytes)
    default: throw .unexpected
    }
  }

  /// ECDH with a SEC1 uncompressed point.
  mutating func agree(with point: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    switch consume self {
    case .elliptic(var key):
      var shared = SecretBytes(zeros: key.curve.coordinateByteCount)
      do throws(CryptographyFailure) {
        var bytes = shared.mutableBytes
        try key.agree(with: point, into: &bytes)
      } catch {
        self = .elliptic(key)
        throw .cryptography
      }
      self = .elliptic(key)
      return shared
    case let other:
      self = other
      throw .unexpected
    }
  }

  /// Decrypts what OAEP encrypted to an RSA key.
  borrowing func decryptOAEP(_ message: Span<UInt8>, hash: OAEPHash) throws(JOSEFault) -> SecretBytes {
    switch self {
    case .rsa(let key):
      do throws(CryptographyFailure) {
        return try key.decryptOAEP(message, hash: hash, label: Span())
      } catch { throw .cryptography }
    default: throw .unexpected
    }
  }
}
