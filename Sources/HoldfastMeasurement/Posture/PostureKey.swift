import HoldfastCore
import HoldfastOpenSSL

/// The key with which a host signs statements about its posture. It follows from the device secret, so it stays the same for as long
/// as the host's device measurement does, and there is no other secret to keep.
package enum PostureKey {
  /// Derives the key: the first of `HKDF-SHA-256(ikm: device secret, no salt, info: "holdfast/1 posture key" ‖ counter, 32 bytes)`,
  /// for a counter of one byte from 0, that is a scalar of P-256.
  ///
  /// Source: RFC 5869 §2, FIPS 186-5 §A.2.2. The device secret is created if there is none.
  ///
  /// - Throws: `deviceSecret`, `cryptography`.
  package static func ofHost(_ files: HostFiles = HostFiles()) throws(MeasurementError) -> P256PrivateKey {
    let secret: Secret<32>
    do throws(HostSecretFault) { secret = try HostSecret(files).readOrCreate() } catch { throw .deviceSecret(error) }
    var cryptography = OpenSSLCryptography()
    for counter in UInt8(0)..<8 {
      var info: [UInt8] = []
      info.append("holdfast/1 posture key")
      info.append(counter)
      var scalar = Secret<32>()
      do throws(CryptographyFailure) {
        try scalar.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
          try secret.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
            try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: info.span, into: &output)
          }
        }
      } catch { throw .cryptography }
      // All but one in 2^32 candidates are scalars.
      do throws(CryptographyFailure) { return try P256PrivateKey(scalar: scalar) } catch { continue }
    }
    throw .cryptography
  }
}
