import HoldfastCore
import HoldfastOpenSSL

/// A key for JWE and the algorithms that it is for: they come from here, never from a header.
///
/// Source: RFC 7516; RFC 8725 §3.1. Used by one thread at a time.
public struct JWEKey: ~Copyable {
  public let management: JWEKeyManagement
  public let encryption: JWEContentEncryption
  /// What a header's `kid` must be, where it has one.
  public let keyID: String?
  var material: JWEKeyMaterial

  /// Reads a private or symmetric JWK that names `alg` and `enc`.
  ///
  /// Throws `unexpected` when it names no algorithm, an unknown one, or is not the kind or size of key for it.
  public init(parsing json: Span<UInt8>) throws(JOSEFault) {
    let key: JWK
    do throws(EncodingFault) { key = try JWK.parse(json) } catch { throw JOSEFault(error) }
    guard let management = key.algorithm.flatMap(JWEKeyManagement.init(rawValue:)),
      let encryption = key.encryption.flatMap(JWEContentEncryption.init(rawValue:))
    else { throw .unexpected }
    let keyID = key.keyID
    let material: JWEKeyMaterial
    switch management.method {
    case .oaep: material = .rsa(try key.rsaPrivateKey())
    case .agree, .agreeAndWrap: material = .elliptic(try key.ellipticPrivateKey())
    case .direct, .wrap, .gcmWrap: material = .octets(try key.octets())
    }
    try self.init(material, management: management, encryption: encryption, keyID: keyID)
  }

  /// An elliptic key with its algorithms. `unexpected` when `management` is not key agreement.
  public init(
    _ key: consuming ECPrivateKey, management: JWEKeyManagement, encryption: JWEContentEncryption, keyID: String?
  ) throws(JOSEFault) {
    try self.init(.elliptic(key), management: management, encryption: encryption, keyID: keyID)
  }

  private init(
    _ material: consuming JWEKeyMaterial, management: JWEKeyManagement, encryption: JWEContentEncryption,
    keyID: String?
  ) throws(JOSEFault) {
    guard material.fits(management, encryption) else { throw .unexpected }
    self.management = management
    self.encryption = encryption
    self.keyID = keyID
    self.material = material
  }
}

extension JWEKeyMaterial {
  /// Whether the key is of the kind and size that the algorithm takes.
  fileprivate func fits(_ management: JWEKeyManagement, _ encryption: JWEContentEncryption) -> Bool {
    switch management.method {
    case .oaep: isRSA
    case .agree, .agreeAndWrap: curve != nil
    case .direct: octetCount == encryption.keyByteCount
    case .wrap(let count), .gcmWrap(let count): octetCount == count
    }
  }
}
