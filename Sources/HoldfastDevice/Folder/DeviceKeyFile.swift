import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The file `device.key`: the device's private key as a JWK with exactly the members `kty`, `crv`, `x`, `y` and `d`.
///
/// Source: RFC 7518 §6.2.2. Text and scalar stay in buffers that are wiped.
package enum DeviceKeyFile {
  package static let maximumByteCount = 512

  /// Writes `key` as JSON with a newline at the end.
  package static func encode(
    _ key: borrowing P256PrivateKey, into text: inout ByteBuffer<512>
  ) throws(KeyFault) {
    let scalar: Secret<32>
    do throws(CryptographyFailure) { scalar = try key.scalar() } catch { throw .unexpected }
    do throws(EncodingFault) {
      try text.append("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"")
      try text.append(asBase64URL: key.publicPoint.x.bytes)
      try text.append("\",\"y\":\"")
      try text.append(asBase64URL: key.publicPoint.y.bytes)
      try text.append("\",\"d\":\"")
      try scalar.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try text.append(asBase64URL: bytes) }
      try text.append("\"}\n")
    } catch { throw .malformed }
  }

  /// Reads the scalar, and checks that it belongs to the public point in the file.
  ///
  /// - Throws: `malformed`, `unexpected` or `notOnCurve`, and never ``KeyFault/privateKey``.
  package static func decode(_ text: Span<UInt8>) throws(KeyFault) -> Secret<32> {
    try JWK.parse(text, only: ["kty", "crv", "x", "y", "d"]).p256Scalar()
  }
}

/// The secrets of a device whose key is in its folder, kept in one place while it is served.
public final class DeviceSecrets: DeviceKeys {
  /// The public half of the key, an uncompressed point of 65 bytes.
  public let publicPoint: P256Point
  private let scalar: Secret<32>
  private let seed: Secret<32>

  /// Derives the secrets from the private key's scalar.
  ///
  /// - Throws: `CryptographyFailure` if `scalar` is not valid.
  package init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    publicPoint = try P256PrivateKey(scalar: scalar).publicPoint
    var cryptography = OpenSSLCryptography()
    seed = try ChallengeSource.seed(from: scalar, using: &cryptography)
    self.scalar = scalar
  }

  /// Makes a key object for use by one thread.
  public func key() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: scalar)
  }

  /// Returns the seed that follows from the private key.
  public func challengeSeed() -> Secret<32> { seed.copy() }

  /// Derives the secret that authorizes the use of the counter that anchors the device.
  package func counterAuthorization() throws(CryptographyFailure) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    return try derivedSecret("holdfast/1 counter authorization", from: scalar, using: &cryptography)
  }
}
