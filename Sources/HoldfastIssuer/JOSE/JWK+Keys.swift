import HoldfastCore
import HoldfastOpenSSL

extension JWK {
  /// The public point of an elliptic key, checked to be on its curve. `unexpected` for another kind of key.
  borrowing func publicPoint() throws(JOSEFault) -> [UInt8] {
    guard type == .elliptic, let curve else { throw .unexpected }
    var point: [UInt8] = [4]
    try withBytes(of: x, count: curve.coordinateByteCount) { point.append($0) }
    try withBytes(of: y, count: curve.coordinateByteCount) { point.append($0) }
    do throws(CryptographyFailure) { try checkPoint(point.span, on: curve) } catch { throw .cryptography }
    return point
  }

  /// The private key of an elliptic key. `unexpected` without one, or when its public point is another one's.
  borrowing func ellipticPrivateKey() throws(JOSEFault) -> ECPrivateKey {
    let point = try publicPoint()
    guard let curve else { throw .unexpected }
    let key = try withBytes(of: d, count: curve.coordinateByteCount) { (scalar) throws(JOSEFault) in
      do throws(CryptographyFailure) {
        return try ECPrivateKey(curve: curve, scalar: scalar)
      } catch { throw .cryptography }
    }
    guard key.publicPoint == point else { throw .unexpected }
    return key
  }

  /// The private key of an RSA key, with its primes. `unexpected` without one; `cryptography` when its parts do not belong
  /// together or it has fewer than 2048 bits.
  consuming func rsaPrivateKey() throws(JOSEFault) -> RSAPrivateKey {
    guard type == .rsa, let n, let e, let d, let p, let q, let dp, let dq, let qi else { throw .unexpected }
    let components = RSAPrivateKey.Components(
      modulus: [UInt8](copying: n.bytes), publicExponent: [UInt8](copying: e.bytes), privateExponent: d,
      firstPrime: p, secondPrime: q, firstExponent: dp, secondExponent: dq, coefficient: qi)
    do throws(CryptographyFailure) { return try RSAPrivateKey(components) } catch { throw .cryptography }
  }

  /// The bytes of a symmetric key. `unexpected` for another kind of key.
  consuming func octets() throws(JOSEFault) -> SecretBytes {
    guard type == .octets, let k else { throw .unexpected }
    return k
  }
}

/// Lends the bytes of a number; `unexpected` unless it is there and has `count` of them.
private func withBytes<Result: ~Copyable>(
  of number: borrowing SecretBytes?, count: Int, _ body: (Span<UInt8>) throws(JOSEFault) -> Result
) throws(JOSEFault) -> Result {
  switch number {
  case .some(let number) where number.count == count: return try body(number.bytes)
  default: throw .unexpected
  }
}
