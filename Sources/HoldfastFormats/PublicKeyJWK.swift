import HoldfastCore
import HoldfastOpenSSL

/// A P-256 public key as a JWK: an issuer's, or a device's.
///
/// Source: RFC 7517 §4, RFC 7518 §6.2.1.
package struct PublicKeyJWK: Sendable, Equatable {
  /// The longest JWK that is read, in bytes.
  package static let maximumByteCount = 4096

  package let point: P256Point

  /// `point` must be on the curve.
  package init(point: P256Point) {
    self.point = point
  }

  /// Reads a JWK.
  package init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch { throw .malformed }
    try self.init(value)
  }

  /// Reads `kty`, `crv`, `x` and `y`; other members are ignored as RFC 7517 §4 asks, but a private key is refused.
  package init(_ value: JSONValue) throws(KeyFault) {
    guard let members = value.members else { throw .unexpected }
    guard !members.contains(where: { haveSameBytes($0.0, "d") }) else { throw .privateKey }
    guard value["kty"]?.text == "EC", value["crv"]?.text == "P-256", let x = coordinate(value["x"]),
      let y = coordinate(value["y"])
    else { throw .unexpected }
    point = P256Point(x: x, y: y)
    do throws(CryptographyFailure) { try checkIsOnCurve(point) } catch { throw .notOnCurve }
  }

  /// The JWK, its required members alone.
  package var json: JSONValue {
    .object([
      ("kty", .string("EC")), ("crv", .string("P-256")),
      ("x", .string(base64URL(point.x))), ("y", .string(base64URL(point.y))),
    ])
  }
}

/// Why a key could not be taken.
package enum KeyFault: Error, Equatable {
  /// Not strict JSON, or too long.
  case malformed
  /// Strict JSON, but not such a key: a member is missing or of another kind or length.
  case unexpected
  /// A private key where a public one belongs: nobody should hand it out.
  case privateKey
  /// Not a point on the curve, or not the public half of the private key.
  case notOnCurve
}

/// An agreement with a key made for this alone: libcrypto refuses every point that is not on the curve.
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

/// Public bytes as base64url text without padding.
private func base64URL<let count: Int>(_ bytes: FixedBytes<count>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes.bytes)
  return String(decoding: text, as: UTF8.self)
}

/// A key that an issuer shares with one device, as a JWK of exactly the members `kty`, `k`, `alg` and `use`.
///
/// Source: RFC 7517 §4, RFC 7518 §3.2 and §6.4. Text and key stay in buffers that are wiped.
package enum MACKeyJWK {
  /// The longest JWK that is read, in bytes.
  package static let maximumByteCount = 512

  /// Writes `key`, 32 bytes, and a line end.
  package static func encode(
    _ key: borrowing Secret<32>, into text: inout ByteBuffer<512>
  ) throws(EncodingFault) {
    try text.append("{\"kty\":\"oct\",\"k\":\"")
    try key.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try text.append(asBase64URL: bytes) }
    try text.append("\",\"alg\":\"HS256\",\"use\":\"sig\"}\n")
  }

  /// Reads a key of 32 bytes. Throws `malformed` and `unexpected`.
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

  /// Whether `text` is a JWK of a symmetric key, of whatever kind: then it is a secret.
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

/// What the world may know of a device: what `enroll` needs to have a token made for it.
package struct DeviceDescriptor: Sendable, Equatable {
  package let deviceID: DeviceID
  package let keyID: KeyID
  package let publicKey: PublicKeyJWK

  /// The key id is computed; throws when the cryptographic library fails.
  package init(deviceID: DeviceID, publicPoint: P256Point) throws(CryptographyFailure) {
    self.deviceID = deviceID
    publicKey = PublicKeyJWK(point: publicPoint)
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: publicPoint, using: &cryptography)
  }

  /// Reads `{"device_id": 32 hex digits, "kid": 16 hex digits, "public_key": JWK}`; the key id must be the key's.
  package init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: PublicKeyJWK.maximumByteCount)
    } catch { throw .malformed }
    guard value.hasOnly(["device_id", "kid", "public_key"]) else { throw .unexpected }
    try self.init(value)
  }

  /// The descriptor's members out of an object that may have more.
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

  /// The descriptor as `device show --json` prints it.
  package var json: JSONValue {
    .object([
      ("device_id", .string(hexadecimal(deviceID))), ("kid", .string(hexadecimal(keyID))),
      ("public_key", publicKey.json),
    ])
  }
}
