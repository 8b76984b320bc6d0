/// A P-256 key pair for one agreement.
struct FreshKey: ~Copyable {
  let publicPoint: P256Point
  private let scalar: Secret<32>

  /// Draws one.
  init<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>(
    using cryptography: inout Crypto, _ random: inout Random
  ) throws(FreshKeyFailure) {
    let scalar: Secret<32>
    let publicPoint: P256Point
    do throws(RandomFailure) { scalar = try random.secret() } catch { throw .random }
    do throws(CryptographyFailure) { publicPoint = try cryptography.p256PublicPoint(scalar: scalar) } catch {
      throw .cryptography
    }
    self.scalar = scalar
    self.publicPoint = publicPoint
  }

  /// ECDH with `peer`. Throws for a point that is not on the curve.
  borrowing func agree<Crypto: Cryptography & ~Copyable>(
    with peer: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var shared = Secret<32>()
    try cryptography.p256Agree(scalar: scalar, peer: peer, into: &shared)
    return shared
  }
}

/// Why there is no fresh key.
enum FreshKeyFailure: Error {
  case random, cryptography
}
