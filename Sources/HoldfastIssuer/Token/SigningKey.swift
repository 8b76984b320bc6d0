import HoldfastCore
import HoldfastOpenSSL
import Synchronization

/// An issuer's P-256 key, or a handle to one in a security module or a key management service.
///
/// It signs measurement tokens, and rules about the posture of provers. Devices trust its public half.
public protocol SigningKey: ~Copyable {
  /// The public half of the key, an uncompressed point of 65 bytes.
  var publicPoint: P256Point { get }

  /// Returns an ECDSA signature, r ‖ s of 64 bytes big-endian, over a SHA-256 digest that was computed already.
  ///
  /// Source: FIPS 186-5 §6.4.1.
  ///
  /// - Throws: `CryptographyFailure` if the key cannot sign. Then no token is issued.
  mutating func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64>
}

extension P256PrivateKey: SigningKey {}

/// An issuer's P-256 key in this process's memory.
///
/// Any number of threads may use it at once; they sign one after the other.
public final class MemorySigningKey: SigningKey, Sendable {
  /// The public half of the key, an uncompressed point of 65 bytes.
  public let publicPoint: P256Point
  private let key: Mutex<P256PrivateKey>

  /// Generates a key. Source: FIPS 186-5 §A.2.2.
  ///
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  public convenience init() throws(CryptographyFailure) {
    self.init(try P256PrivateKey())
  }

  /// Imports a key.
  ///
  /// - Parameter scalar: The private key, 32 bytes big-endian.
  /// - Throws: `CryptographyFailure` unless the scalar is from 1 to the order of P-256 minus 1.
  public convenience init(scalar: borrowing Secret<32>) throws(CryptographyFailure) {
    self.init(try P256PrivateKey(scalar: scalar))
  }

  private init(_ key: consuming P256PrivateKey) {
    publicPoint = key.publicPoint
    self.key = Mutex(key)
  }

  /// Returns the private key, 32 bytes big-endian, to be stored where only the issuer reads it.
  ///
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  public func scalar() throws(CryptographyFailure) -> Secret<32> {
    try key.withLock { (key) throws(CryptographyFailure) in try key.scalar() }
  }

  /// Returns an ECDSA signature, r ‖ s of 64 bytes, over a SHA-256 digest.
  ///
  /// Source: FIPS 186-5 §6.4.1. Timing: libcrypto signs in constant time, with a random nonce.
  ///
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  public func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> {
    try key.withLock { (key) throws(CryptographyFailure) in try key.sign(digest) }
  }
}
