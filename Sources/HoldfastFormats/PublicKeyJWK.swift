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
    let key = try JWK.publicKey(in: value)
    guard key.curve == .p256 else { throw .unexpected }
    let encoded = try key.publicPoint()
    guard let x = FixedBytes<32>(encoded.span.extracting(1..<33)),
      let y = FixedBytes<32>(encoded.span.extracting(33..<65))
    else { throw .unexpected }
    point = P256Point(x: x, y: y)
  }

  /// The JWK, with only its required members.
  package var json: JSONValue {
    publicJWK(curve: .p256, point: [4] + [UInt8](point.x.bytes) + [UInt8](point.y.bytes))
  }
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
    let key = try JWK.parse(text, only: ["kty", "k", "alg", "use"])
    guard key.algorithm == "HS256", key.use == "sig" else { throw .unexpected }
    let octets = try key.octets()
    guard let secret = Secret<32>(copying: octets.bytes) else { throw .unexpected }
    return secret
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
}

/// The public description of a device, which an issuer needs to issue a token for it. `holdfast device show --json` prints it.
public struct DeviceDescriptor: Sendable, Equatable {
  /// The id of the device, 16 bytes.
  public let deviceID: DeviceID
  /// The id of the device's public key, 8 bytes.
  public let keyID: KeyID
  /// The device's public key.
  package let publicKey: PublicKeyJWK
  /// The point of the device's public key, 65 bytes.
  public var publicPoint: P256Point { publicKey.point }

  /// Creates a descriptor, and computes the key id; throws if the cryptographic library fails.
  ///
  /// - Parameters:
  ///   - deviceID: The id of the device, 16 bytes.
  ///   - publicPoint: The device's public key, an uncompressed point of 65 bytes that must be on P-256.
  public init(deviceID: DeviceID, publicPoint: P256Point) throws(CryptographyFailure) {
    self.deviceID = deviceID
    publicKey = PublicKeyJWK(point: publicPoint)
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: publicPoint, using: &cryptography)
  }

  /// Parses `{"device_id": 32 hex digits, "kid": 16 hex digits, "public_key": JWK}`; the key id must match the key.
  ///
  /// - Parameter bytes: Strict JSON of at most 4096 bytes, with no other members.
  /// - Throws: ``KeyFault``.
  public init(json bytes: [UInt8]) throws(KeyFault) {
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

  /// The descriptor as JSON, which ``init(json:)`` and the command line read.
  public var encodedJSON: [UInt8] { json.pretty() }

  /// The descriptor in the form that `device show --json` prints.
  package var json: JSONValue {
    .object([
      ("device_id", .string(hexadecimal(deviceID))), ("kid", .string(hexadecimal(keyID))),
      ("public_key", publicKey.json),
    ])
  }
}
