import HoldfastOpenSSL

/// How a JWE's content key reaches its recipient: all of RFC 7518 but `RSA1_5` and PBES2.
///
/// Source: RFC 7518 §4.1.
public enum JWEKeyManagement: String, Sendable, CaseIterable {
  case rsaOAEP = "RSA-OAEP"
  case rsaOAEP256 = "RSA-OAEP-256"
  case a128KW = "A128KW"
  case a192KW = "A192KW"
  case a256KW = "A256KW"
  case direct = "dir"
  case ecdhES = "ECDH-ES"
  case ecdhESA128KW = "ECDH-ES+A128KW"
  case ecdhESA192KW = "ECDH-ES+A192KW"
  case ecdhESA256KW = "ECDH-ES+A256KW"
  case a128GCMKW = "A128GCMKW"
  case a192GCMKW = "A192GCMKW"
  case a256GCMKW = "A256GCMKW"

  /// What is done with the key.
  enum Method {
    case oaep(OAEPHash)
    case wrap(keyByteCount: Int)
    case direct
    case agree
    case agreeAndWrap(keyByteCount: Int)
    case gcmWrap(keyByteCount: Int)
  }

  var method: Method {
    switch self {
    case .rsaOAEP: .oaep(.sha1)
    case .rsaOAEP256: .oaep(.sha256)
    case .a128KW: .wrap(keyByteCount: 16)
    case .a192KW: .wrap(keyByteCount: 24)
    case .a256KW: .wrap(keyByteCount: 32)
    case .direct: .direct
    case .ecdhES: .agree
    case .ecdhESA128KW: .agreeAndWrap(keyByteCount: 16)
    case .ecdhESA192KW: .agreeAndWrap(keyByteCount: 24)
    case .ecdhESA256KW: .agreeAndWrap(keyByteCount: 32)
    case .a128GCMKW: .gcmWrap(keyByteCount: 16)
    case .a192GCMKW: .gcmWrap(keyByteCount: 24)
    case .a256GCMKW: .gcmWrap(keyByteCount: 32)
    }
  }
}
