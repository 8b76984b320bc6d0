import HoldfastCore
import HoldfastOpenSSL

/// What an issuer vouches for measurement tokens with, and for nothing else.
public struct IssuerSecrets: ~Copyable {
  /// Signs for every device.
  public var signing: P256PrivateKey
  /// What the MAC keys follow from, one for each device; nil where the issuer shares none.
  public let macSecret: Secret<32>?

  public init(signing: consuming P256PrivateKey, macSecret: consuming Secret<32>? = nil) {
    self.signing = signing
    self.macSecret = macSecret
  }

  /// The key that the issuer shares with one device; nil where it shares none.
  borrowing func macKey(
    for deviceID: DeviceID, _ point: P256Point, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32>? {
    switch macSecret {
    case .some(let secret): try deviceMACKey(from: secret, for: deviceID, point, using: &cryptography)
    case .none: nil
    }
  }
}

/// The key that an issuer shares with one device:
/// `HKDF-SHA-256(secret, info: "holdfast/1 mac key" ‖ 0x00 ‖ device id ‖ device's point)`, 32 bytes.
///
/// The point is in it, so that whoever names a device's id together with a key of their own gets another MAC key than the
/// device's. Source: RFC 5869 §2.
func deviceMACKey(
  from secret: borrowing Secret<32>, for deviceID: DeviceID, _ point: P256Point,
  using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Secret<32> {
  var info: [UInt8] = []
  info.append(domain: "holdfast/1 mac key")
  info.append(deviceID.bytes)
  info.append(point.bytes)
  var key = Secret<32>()
  try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
    try secret.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: info.span, into: &output)
    }
  }
  return key
}
