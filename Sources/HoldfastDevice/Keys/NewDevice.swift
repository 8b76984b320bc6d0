import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL

extension P256PrivateKey {
  /// A new key. Throws also where the random source fails.
  ///
  /// Source: FIPS 186-5 §A.2.2, testing candidates: hardly ever is the first one not a scalar.
  init<Random: RandomSource & ~Copyable>(random: inout Random) throws(CryptographyFailure) {
    for _ in 0..<8 {
      let scalar: Secret<32>
      do throws(RandomFailure) { scalar = try random.secret() } catch { throw CryptographyFailure() }
      do throws(CryptographyFailure) {
        self = try P256PrivateKey(scalar: scalar)
        return
      } catch { continue }
    }
    throw CryptographyFailure()
  }
}

extension DeviceDescriptor {
  /// A new device of this key, with a random id. Throws also where the random source fails.
  init<Random: RandomSource & ~Copyable>(
    of key: borrowing P256PrivateKey, random: inout Random
  ) throws(CryptographyFailure) {
    let deviceID: DeviceID
    do throws(RandomFailure) { deviceID = try random.fixedBytes() } catch { throw CryptographyFailure() }
    try self.init(deviceID: deviceID, publicPoint: key.publicPoint)
  }
}
