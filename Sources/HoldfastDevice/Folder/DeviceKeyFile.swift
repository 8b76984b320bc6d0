import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The file `device.key`: the device's private key as a JWK with exactly the members `kty`, `crv`, `x`, `y` and `d`.
///
/// Source: RFC 7518 §6.2.2. Text and scalar stay in buffers that are wiped.
package enum DeviceKeyFile {
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

/// The secrets of a device whose key is in its folder, or in a TPM that its folder names, kept in one place while it is served.
public final class DeviceSecrets: DeviceKeys {
  /// The public half of the key, an uncompressed point of 65 bytes.
  public let publicPoint: P256Point
  /// The place of the key in a TPM; nil for a key in a file.
  package var tpmKey: TPMKeyPlace? { tpm?.place }
  /// The private key's scalar, or what takes its place for a key in a TPM.
  private let root: Secret<32>
  private let seed: Secret<32>
  private let tpm: TPMKey?

  /// Derives the secrets from the private key's scalar.
  ///
  /// - Throws: `CryptographyFailure` if `scalar` is not valid.
  package init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    publicPoint = try P256PrivateKey(scalar: scalar).publicPoint
    var cryptography = OpenSSLCryptography()
    seed = try ChallengeSource.seed(from: scalar, using: &cryptography)
    root = scalar
    tpm = nil
  }

  /// Derives the secrets from a key in a TPM, whose public half is `publicPoint`.
  ///
  /// - Parameter check: shows that the key is this one; nil for a key that was made just now.
  /// - Throws: `key`, `failed`; `file` with `otherDevice` if the TPM holds another key at the place.
  package init(_ key: TPMKey, _ publicPoint: P256Point, check: Digest?) throws(DeviceFolderFault) {
    let root: Secret<32>
    do throws(CounterFault) { root = try key.root(publicPoint) } catch { throw .key(error) }
    let own: Digest
    do throws(CryptographyFailure) {
      own = try Self.check(root)
      var cryptography = OpenSSLCryptography()
      seed = try ChallengeSource.seed(from: root, using: &cryptography)
    } catch { throw .failed }
    guard check == nil || check == own else { throw .file(.key, .otherDevice) }
    (self.publicPoint, tpm) = (publicPoint, key)
    self.root = root
  }

  /// Makes a key object for use by one thread.
  public func key() throws(CryptographyFailure) -> DeviceKey {
    if let tpm { return DeviceKey(tpm, publicPoint) }
    return DeviceKey(try P256PrivateKey(scalar: root))
  }

  /// Returns the seed that follows from the private key.
  public func challengeSeed() -> Secret<32> { seed.copy() }

  /// Derives the secret that authorizes the use of the counter that anchors the device.
  package func counterAuthorization() throws(CryptographyFailure) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    return try derivedSecret("holdfast/1 counter authorization", from: root, using: &cryptography)
  }

  /// Writes the contents of `device.key`.
  package func encode(into text: inout ByteBuffer<1024>) throws(KeyFault) {
    if let tpm {
      let check: Digest
      do throws(CryptographyFailure) { check = try Self.check(root) } catch { throw .unexpected }
      do throws(EncodingFault) { try tpm.encode(check: check, into: &text) } catch { throw .malformed }
      return
    }
    var key = ByteBuffer<512>()
    let pair: P256PrivateKey
    do throws(CryptographyFailure) { pair = try P256PrivateKey(scalar: root) } catch { throw .unexpected }
    try DeviceKeyFile.encode(pair, into: &key)
    do throws(EncodingFault) { try text.append(key.bytes) } catch { throw .malformed }
  }

  /// Removes the key from its TPM; a key in a file stays. For a device that could not be completed, and one that is reset.
  func removeFromTPM() throws(CounterFault) {
    try tpm?.remove()
  }

  /// Returns a hash of the secret that only the key in a TPM yields. It says nothing about other secrets.
  private static func check(_ root: borrowing Secret<32>) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    let derived = try derivedSecret("holdfast/1 key check", from: root, using: &cryptography)
    guard let digest = derived.withBytes({ Digest($0) }) else { throw CryptographyFailure() }
    return digest
  }
}

/// The private key of a device, for use by one thread: a key in memory, or one in a TPM.
public struct DeviceKey: AgreementKey, ~Copyable {
  /// The public half of the key, an uncompressed point of 65 bytes.
  public let publicPoint: P256Point
  private var pair: P256PrivateKey?
  private let tpm: TPMKey?

  init(_ pair: consuming P256PrivateKey) {
    publicPoint = pair.publicPoint
    self.pair = consume pair
    tpm = nil
  }

  init(_ tpm: TPMKey, _ publicPoint: P256Point) {
    (self.tpm, self.publicPoint) = (tpm, publicPoint)
    pair = nil
  }

  /// Computes ECDH: writes the x coordinate of this key times `peer`, 32 bytes. Source: SP 800-56A §5.7.1.2.
  ///
  /// - Throws: `CryptographyFailure` if `peer` is not on the curve, or if the TPM cannot be used.
  public mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    guard let tpm else {
      guard pair != nil else { throw CryptographyFailure() }
      return try pair!.agree(with: peer, into: &shared)
    }
    do throws(CounterFault) { try tpm.agree(with: peer, into: &shared) } catch { throw CryptographyFailure() }
  }
}
