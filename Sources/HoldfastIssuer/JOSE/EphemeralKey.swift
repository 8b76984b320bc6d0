import HoldfastCore
import HoldfastOpenSSL

/// A fresh private key from `random`: candidates are drawn until one is in 1 ..< n.
///
/// Source: FIPS 186-5 §A.2.2.
func ephemeralKey(
  on curve: NISTCurve, random: inout some RandomSource & ~Copyable
) throws(JOSEFault) -> ECPrivateKey {
  for _ in 0..<128 {
    var scalar = SecretBytes(zeros: curve.coordinateByteCount)
    do throws(RandomFailure) {
      var bytes = scalar.mutableBytes
      try random.fill(&bytes)
      if curve == .p521 { bytes[0] &= 1 }
    } catch { throw .cryptography }
    do throws(CryptographyFailure) {
      return try ECPrivateKey(curve: curve, scalar: scalar.bytes)
    } catch { continue }
  }
  throw .cryptography
}
