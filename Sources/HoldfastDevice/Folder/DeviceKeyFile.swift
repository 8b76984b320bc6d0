import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The file `device.key`: the device's private key as a JWK with exactly the members `kty`, `crv`, `x`, `y` and `d`.
///
/// Source: RFC 7518 §6.2.2. Text and scalar stay in buffers that are wiped.
enum DeviceKeyFile {
  static let maximumByteCount = 512

  /// Writes `key` as JSON with a newline at the end.
  static func encode(
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
  static func decode(_ text: Span<UInt8>) throws(KeyFault) -> Secret<32> {
    var members = Members()
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      while let name = try reader.nextMember(&object) { try members.read(name, from: &reader) }
      try reader.finish()
    } catch { throw error == .unexpected ? .unexpected : .malformed }
    guard members.isElliptic, members.isP256, let x = members.x, let y = members.y,
      let scalar = Secret<32>(copying: members.scalar.bytes)
    else { throw .unexpected }
    do throws(CryptographyFailure) {
      guard try P256PrivateKey(scalar: scalar).publicPoint == P256Point(x: x, y: y) else { throw CryptographyFailure() }
    } catch { throw .notOnCurve }
    return scalar
  }

  private struct Members: ~Copyable {
    var isElliptic = false
    var isP256 = false
    var x: FixedBytes<32>?
    var y: FixedBytes<32>?
    var scalar = ByteBuffer<32>()

    mutating func read(_ name: borrowing JSONString, from reader: inout JSONReader) throws(EncodingFault) {
      if name.equals("kty") {
        isElliptic = try reader.string().equals("EC")
      } else if name.equals("crv") {
        isP256 = try reader.string().equals("P-256")
      } else if name.equals("x") {
        x = try reader.string().base64URLBytes()
      } else if name.equals("y") {
        y = try reader.string().base64URLBytes()
      } else if name.equals("d") {
        var text = ByteBuffer<48>()
        try reader.string().unescape(into: &text)
        try scalar.append(base64URL: text.bytes)
      } else {
        throw .unexpected
      }
    }
  }
}

/// The secrets of a device, kept in one place while it is served.
final class DeviceSecrets: Sendable {
  let publicPoint: P256Point
  private let scalar: Secret<32>
  private let challengeSeed: Secret<32>

  /// Derives the secrets from the private key's scalar.
  ///
  /// - Throws: `CryptographyFailure` if `scalar` is not valid.
  init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    publicPoint = try P256PrivateKey(scalar: scalar).publicPoint
    var cryptography = OpenSSLCryptography()
    challengeSeed = try ChallengeSource.seed(from: scalar, using: &cryptography)
    self.scalar = scalar
  }

  /// Makes a key object for use by one thread.
  func key() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: scalar)
  }

  /// Makes the challenge source of one connection.
  func challenges(bootCount: UInt64, connection: UInt64) -> ChallengeSource {
    ChallengeSource(seed: challengeSeed.copy(), bootCount: bootCount, connection: connection)
  }

  /// Derives the secret that authorizes the use of the counter that anchors the device.
  func counterAuthorization() throws(CryptographyFailure) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    return try derivedSecret("holdfast/1 counter authorization", from: scalar, using: &cryptography)
  }
}
