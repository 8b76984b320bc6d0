import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The development key: with it, any program of a registered release is approved, as the app `development`. 128 random bits, as 26
/// characters of base32.
///
/// Source: RFC 4648 §6 for the alphabet. The last character has 3 bits.
struct DevelopmentKey: ~Copyable {
  /// The id under which the key is sealed.
  static let id = Array("development-key".utf8)
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// The key, 16 bytes.
  let key: Secret<16>

  /// Makes a key.
  init(random: inout some RandomSource & ~Copyable) throws(RandomFailure) { key = try random.secret() }

  /// Takes over a key.
  init(_ key: consuming Secret<16>) { self.key = key }

  /// The key as people copy it.
  var text: String {
    key.withBytes { bytes in
      var characters: [UInt8] = []
      for position in 0..<26 {
        var value: UInt8 = 0
        for bit in position * 5..<position * 5 + 5 {
          value = value << 1 | (bit < 128 ? bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 : 0)
        }
        // Every character is read, so that timing does not say which one it is.
        var character: UInt8 = 0
        for index in 0..<32 { character |= index == Int(value) ? Self.alphabet[index] : 0 }
        characters.append(character)
      }
      return String(decoding: characters, as: UTF8.self)
    }
  }

  /// Computes the code that proves the knowledge of the key to a service, for evidence with a digest:
  /// `HMAC-SHA-256(key, "holdfast/1 development" ‖ 0x00 ‖ SHA-256(evidence))`.
  func code(of evidence: Digest) throws(CryptographyFailure) -> MAC {
    var cryptography = OpenSSLCryptography()
    var mac = try key.withBytes { (key) throws(CryptographyFailure) in try cryptography.hmacSHA256(key: key) }
    mac.append(domain: "holdfast/1 development")
    mac.append(evidence.bytes)
    return try mac.finish()
  }
}

extension Fleet {
  /// Returns whether a code belongs to evidence with a digest and to the present development key. Timing: the comparison does not
  /// reveal where the codes differ. The key has 128 random bits, so attempts are not counted.
  func admits(
    developmentCode code: Digest, of evidence: Digest, _ apps: AttestedAppSettings
  ) throws(FleetFault) -> Bool {
    guard let sealed = apps.sealedDevelopmentKey else { return false }
    do throws(CryptographyFailure) {
      let id = DevelopmentKey.id
      let opened = try serviceKey.open(sealed, as: .development, id: id.span)
      guard let key = Secret<16>(copying: opened.bytes) else { throw CryptographyFailure() }
      let expected = try DevelopmentKey(key).code(of: evidence)
      return constantTimeEqual(expected.bytes, code.bytes)
    } catch { throw .wrongServiceKey }
  }
}
