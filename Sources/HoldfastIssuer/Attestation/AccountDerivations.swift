import HoldfastCore
import HoldfastOpenSSL

/// What the service derives from its account secret, so that it says nothing to others.
struct AccountDerivations: ~Copyable {
  let account: SecretBytes

  /// `did`: the same for the same device, 16 bytes.
  borrowing func deviceID(
    of components: [Component], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> FixedBytes<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attested device")
    mac.appendCBOR(array: components.count)
    for component in components {
      mac.appendCBOR(array: 2)
      mac.appendCBOR(text: component.id.bytes)
      mac.appendCBOR(bytes: component.digest.bytes)
    }
    let code = try mac.finish()
    return FixedBytes<16>(code.bytes.extracting(first: 16)) ?? FixedBytes()
  }

  /// `arc`: ten characters of base32 that stand for the device and its properties, fit for a log.
  ///
  /// Source: RFC 4648 §6 for the alphabet.
  borrowing func responseCode(
    device: FixedBytes<16>, properties: [BoundedText<32>], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> BoundedText<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attestation response code")
    mac.append(device.bytes)
    mac.appendCBOR(array: properties.count)
    for property in properties { mac.appendCBOR(text: property.bytes) }
    let code = try mac.finish()
    var bits: UInt64 = 0
    for index in 0..<8 { bits = bits << 8 | UInt64(code[index]) }
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var text: [UInt8] = []
    for _ in 0..<10 {
      text.append(alphabet[Int(bits >> 59)])
      bits <<= 5
    }
    return BoundedText<16>(text.span) ?? BoundedText()
  }
}
