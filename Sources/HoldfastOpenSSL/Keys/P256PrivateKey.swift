import COpenSSL
import HoldfastCore

/// A P-256 private key in this process's memory, for key agreement and signatures.
///
/// Used by one thread at a time.
@safe
public struct P256PrivateKey: ~Copyable, AgreementKey, Sendable {
  public let publicPoint: P256Point
  private var key: ECPrivateKey
  private var signer: Signer?

  /// A new key from libcrypto's generator. Source: FIPS 186-5 §A.2.2.
  public init() throws(CryptographyFailure) {
    try self.init(ECPrivateKey(generatingOn: .p256))
  }

  /// The key of a big-endian scalar; throws unless it is in 1 ..< n.
  public init(scalar: borrowing Secret<32>) throws(CryptographyFailure) {
    let key = try scalar.withBytes { (scalar) throws(CryptographyFailure) in
      try ECPrivateKey(curve: .p256, scalar: scalar)
    }
    try self.init(key)
  }

  private init(_ key: consuming ECPrivateKey) throws(CryptographyFailure) {
    guard let point = P256Point(key.publicPoint.span) else { throw CryptographyFailure() }
    publicPoint = point
    self.key = key
  }

  /// The scalar, big-endian: for a key file.
  public borrowing func scalar() throws(CryptographyFailure) -> Secret<32> {
    var scalar = Secret<32>()
    try scalar.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try key.writeScalar(into: &bytes)
    }
    return scalar
  }

  public mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    try shared.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try key.agree(with: peer.bytes, into: &bytes)
    }
  }

  /// An ECDSA signature, r ‖ s of 64 bytes, over a SHA-256 digest. Source: FIPS 186-5 §6.4.1.
  ///
  /// Timing: libcrypto signs in constant time, with a random nonce.
  public mutating func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> {
    if signer == nil { signer = try Signer(key: key.key) }
    return try signer!.sign(digest)
  }
}
