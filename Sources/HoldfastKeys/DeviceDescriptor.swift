import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

/// What the world may know of a device: what `enroll` needs to have a token made for it.
public struct DeviceDescriptor: Sendable, Equatable {
  public let deviceID: DeviceID
  public let keyID: KeyID
  public let publicKey: PublicKeyJWK

  /// The key id is computed; throws when the cryptographic library fails.
  public init(deviceID: DeviceID, publicPoint: P256Point) throws(CryptographyFailure) {
    self.deviceID = deviceID
    publicKey = PublicKeyJWK(point: publicPoint)
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: publicPoint, using: &cryptography)
  }

  /// Reads `{"device_id": 32 hex digits, "kid": 16 hex digits, "public_key": JWK}`; the key id must be the key's.
  public init(json bytes: [UInt8]) throws(KeyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: PublicKeyJWK.maximumByteCount)
    } catch { throw .malformed }
    guard value.hasOnly(["device_id", "kid", "public_key"]) else { throw .unexpected }
    try self.init(value)
  }

  /// The descriptor's members out of an object that may have more.
  public init(_ value: JSONValue) throws(KeyFault) {
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
  public var json: JSONValue {
    .object([
      ("device_id", .string(hexadecimal(deviceID))), ("kid", .string(hexadecimal(keyID))),
      ("public_key", publicKey.json),
    ])
  }
}
