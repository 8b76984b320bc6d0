import HoldfastCore
import HoldfastOpenSSL

/// The namespaces and algorithm names of key containers.
///
/// Source: RFC 6030 §10 and §12; XML Encryption 1.1 §3 and §5; RFC 9231 §2.2.
enum PSKCNames {
  static let pskc = ["urn:ietf:params:xml:ns:keyprov:pskc"]
  static let signature = ["http://www.w3.org/2000/09/xmldsig#"]
  static let encryption = ["http://www.w3.org/2001/04/xmlenc#"]
  static let encryption11 = ["http://www.w3.org/2009/xmlenc11#"]
  /// PBKDF2's parameters: RFC 6030's figure has them in PKCS #5's namespace and their children in none, so in the container's own
  /// where that is the default.
  static let derivation = [
    "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#", "http://www.w3.org/2009/xmlenc11#", "",
    "urn:ietf:params:xml:ns:keyprov:pskc",
  ]

  /// Whether `algorithm` names PBKDF2, by PKCS #5 as RFC 6030 does, or by XML Encryption 1.1.
  static func isPBKDF2(_ algorithm: String?) -> Bool {
    algorithm == "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2"
      || algorithm == "http://www.w3.org/2009/xmlenc11#pbkdf2"
  }

  /// The HMAC that a MAC or a PBKDF2 function names.
  static func hmac(_ algorithm: String?) -> HMAC? {
    switch algorithm {
    case "http://www.w3.org/2000/09/xmldsig#hmac-sha1": .sha1
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256": .sha256
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha384": .sha384
    case "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512": .sha512
    default: nil
    }
  }
}

/// A cipher of a container: which one, and how long its key is.
enum PSKCCipher: Equatable {
  /// AES-CBC, which needs a MAC.
  case aesCBC(keyByteCount: Int)
  /// AES key wrap, which has its own check.
  case aesKeyWrap(keyByteCount: Int)

  init(_ algorithm: String?) throws(ImportFault) {
    switch algorithm {
    case "http://www.w3.org/2001/04/xmlenc#aes128-cbc": self = .aesCBC(keyByteCount: 16)
    case "http://www.w3.org/2001/04/xmlenc#aes192-cbc": self = .aesCBC(keyByteCount: 24)
    case "http://www.w3.org/2001/04/xmlenc#aes256-cbc": self = .aesCBC(keyByteCount: 32)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes128": self = .aesKeyWrap(keyByteCount: 16)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes192": self = .aesKeyWrap(keyByteCount: 24)
    case "http://www.w3.org/2001/04/xmlenc#kw-aes256": self = .aesKeyWrap(keyByteCount: 32)
    default: throw .unsupportedAlgorithm
    }
  }

  var keyByteCount: Int {
    switch self {
    case .aesCBC(let count), .aesKeyWrap(let count): count
    }
  }

  /// Opens `value`, whose MAC was checked where it needs one; `wrongKey` when it does not open.
  func open(_ value: Span<UInt8>, key: Span<UInt8>) throws(ImportFault) -> SecretBytes {
    guard key.count == keyByteCount else { throw .wrongKey }
    do {
      switch self {
      case .aesCBC:
        guard value.count >= 32, value.count % 16 == 0 else { throw CryptographyFailure() }
        return try AESCBC.decrypt(
          key: key, initializationVector: value.extracting(first: 16),
          message: value.extracting(droppingFirst: 16), padding: .xmlEncryption)
      case .aesKeyWrap: return try AESKeyWrap.unwrap(key: key, wrapped: value)
      }
    } catch {
      throw .wrongKey
    }
  }
}
