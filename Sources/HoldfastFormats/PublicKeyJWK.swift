import HoldfastCore
import HoldfastOpenSSL

/// A P-256 public key, of an issuer or a device, as a JWK.
///
/// Source: RFC 7517 §4, RFC 7518 §6.2.1.
package struct PublicKeyJWK: Sendable, Equatable {
  /// The maximum byte count of a JWK.
  package static let maximumByteCount = 4096

  /// The public point: x and y, 32 bytes each.
  package let point: P256Point

  /// Creates a key from a point, which must be on the curve.
  package init(point: P256Point) {
    self.point = point
  }

  /// Parses a JWK of at most ``maximumByteCount`` bytes.
  ///
  /// - Throws: ``KeyFault``.
  package init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch { throw .malformed }
    try self.init(value)
  }

  /// Reads `kty`, `crv`, `x` and `y`. Other members are ignored, as RFC 7517 §4 requires, but a private key is rejected.
  package init(_ value: JSONValue) throws(KeyFault) {
    guard let members = value.members else { throw .unexpected }
    guard !members.contains(where: { haveSameBytes($0.0, "d") }) else { throw .privateKey }
    guard value["kty"]?.text == "EC", value["crv"]?.text == "P-256", let x = coordinate(value["x"]),
      let y = coordinate(value["y"])
    else { throw .unexpected }
    point = P256Point(x: x, y: y)
    do throws(CryptographyFailure) { try checkIsOnCurve(point) } catch { throw .notOnCurve }
  }

  /// The JWK, with only its required members.
  package var json: JSONValue {
    .object([
      ("kty", .string("EC")), ("crv", .string("P-256")),
      ("x", .string(base64URL(point.x))), ("y", .string(base64URL(point.y))),
    ])
  }
}

/// A reason why a key was rejected.
package enum KeyFault: Error, Equatable {
  /// The text is not strict JSON, or is too long.
  case malformed
  /// The text is strict JSON, but not such a key: a member is missing or has another kind or length.
  case unexpected
  /// The key is a private one where a public one is required: a private key must not be passed on.
  case privateKey
  /// The point is not on the curve, or is not the public half of the private key.
  case notOnCurve
}

/// Checks a point by an agreement with a temporary key: libcrypto rejects every point that is not on the curve.
private func checkIsOnCurve(_ point: P256Point) throws(CryptographyFailure) {
  var key = try P256PrivateKey()
  var shared = Secret<32>()
  try key.agree(with: point, into: &shared)
}

private func coordinate(_ value: JSONValue?) -> FixedBytes<32>? {
  guard let text = value?.text else { return nil }
  let utf8 = Array(text.utf8)
  var bytes = ByteBuffer<32>()
  do throws(EncodingFault) { try bytes.append(base64URL: utf8.span) } catch { return nil }
  return FixedBytes<32>(bytes.bytes)
}

/// Returns public bytes as base64url text without padding.
private func base64URL<let count: Int>(_ bytes: FixedBytes<count>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes.bytes)
  return String(decoding: text, as: UTF8.self)
}

/// The encoding of a key that an issuer shares with one device: a JWK with exactly the members `kty`, `k`, `alg` and `use`.
///
/// Source: RFC 7517 §4, RFC 7518 §3.2 and §6.4. Text and key stay in buffers that are wiped.
package enum MACKeyJWK {
  /// The maximum byte count of a JWK.
  package static let maximumByteCount = 512

  /// Writes `key`, 32 bytes, as a JWK and a line end.
  package static func encode(
    _ key: borrowing Secret<32>, into text: inout ByteBuffer<512>
  ) throws(EncodingFault) {
    try text.append("{\"kty\":\"oct\",\"k\":\"")
    try key.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try text.append(asBase64URL: bytes) }
    try text.append("\",\"alg\":\"HS256\",\"use\":\"sig\"}\n")
  }

  /// Reads a key of 32 bytes.
  ///
  /// - Throws: `malformed`, `unexpected`.
  package static func decode(_ text: Span<UInt8>) throws(KeyFault) -> Secret<32> {
    var members = Members()
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      while let name = try reader.nextMember(&object) { try members.read(name, from: &reader) }
      try reader.finish()
    } catch { throw error == .unexpected ? .unexpected : .malformed }
    guard members.isOctets, members.isHS256, members.isForSignatures, let key = Secret<32>(copying: members.key.bytes)
    else { throw .unexpected }
    return key
  }

  /// Returns whether `text` is a JWK of any symmetric key, and therefore a secret.
  package static func isSymmetricKey(_ text: Span<UInt8>) -> Bool {
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      while let name = try reader.nextMember(&object) {
        if name.equals("kty") { return try reader.string().equals("oct") }
        try reader.skipValue()
      }
      return false
    } catch { return false }
  }

  private struct Members: ~Copyable {
    var isOctets = false
    var isHS256 = false
    var isForSignatures = false
    var key = ByteBuffer<32>()

    mutating func read(_ name: borrowing JSONString, from reader: inout JSONReader) throws(EncodingFault) {
      if name.equals("kty") {
        isOctets = try reader.string().equals("oct")
      } else if name.equals("alg") {
        isHS256 = try reader.string().equals("HS256")
      } else if name.equals("use") {
        isForSignatures = try reader.string().equals("sig")
      } else if name.equals("k") {
        var text = ByteBuffer<48>()
        try reader.string().unescape(into: &text)
        try key.append(base64URL: text.bytes)
      } else {
        throw .unexpected
      }
    }
  }
}

/// The public description of a device, which `enroll` needs to have a token issued for it.
package struct DeviceDescriptor: Sendable, Equatable {
  /// The id of the device, 16 bytes.
  package let deviceID: DeviceID
  /// The id of the device's public key, 8 bytes.
  package let keyID: KeyID
  /// The device's public key.
  package let publicKey: PublicKeyJWK

  /// Creates a descriptor, and computes the key id; throws if the cryptographic library fails.
  package init(deviceID: DeviceID, publicPoint: P256Point) throws(CryptographyFailure) {
    self.deviceID = deviceID
    publicKey = PublicKeyJWK(point: publicPoint)
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: publicPoint, using: &cryptography)
  }

  /// Parses `{"device_id": 32 hex digits, "kid": 16 hex digits, "public_key": JWK}`; the key id must match the key.
  ///
  /// - Throws: ``KeyFault``.
  package init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: PublicKeyJWK.maximumByteCount)
    } catch { throw .malformed }
    guard value.hasOnly(["device_id", "kid", "public_key"]) else { throw .unexpected }
    try self.init(value)
  }

  /// Reads the descriptor's members from an object that may have others.
  ///
  /// - Throws: ``KeyFault``.
  package init(_ value: JSONValue) throws(KeyFault) {
    guard let deviceID: DeviceID = value["device_id"]?.text.flatMap(fixedBytes(hexadecimal:)),
      let keyID: KeyID = value["kid"]?.text.flatMap(fixedBytes(hexadecimal:)), let key = value["public_key"]
    else { throw .unexpected }
    let publicKey = try PublicKeyJWK(key)
    do throws(CryptographyFailure) {
      try self.init(deviceID: deviceID, publicPoint: publicKey.point)
    } catch { throw .notOnCurve }
    guard self.keyID == keyID else { throw .unexpected }
  }

  /// The descriptor in the form that `device show --json` prints.
  package var json: JSONValue {
    .object([
      ("device_id", .string(hexadecimal(deviceID))), ("kid", .string(hexadecimal(keyID))),
      ("public_key", publicKey.json),
    ])
  }
}
