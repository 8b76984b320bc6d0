import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

extension DeviceFolder {
  /// Takes a bulletin that the owner hands in, also while the device is served. It is judged as if a prover had delivered it.
  ///
  /// - Parameter bulletin: the bulletin, at most 3072 bytes. A sealed one is refused if the device's key is not in the folder.
  /// - Returns: `taken` if the bulletin is durable. Any other result changes nothing.
  /// - Throws: `file` and `key` for a fault of the ledger, the policy or the key.
  package func take(bulletin: [UInt8], in ledger: Ledger) throws(DeviceFolderFault) -> BulletinResult {
    guard hasKey else {
      var key = AbsentKey(publicPoint: descriptor.publicKey.point)
      return try take(bulletin, in: ledger, key: &key)
    }
    let secrets = try secrets()
    var key: DeviceKey
    do throws(CryptographyFailure) { key = try secrets.key() } catch { throw .failed }
    return try take(bulletin, in: ledger, key: &key)
  }

  private func take<Key: AgreementKey & ~Copyable>(
    _ bulletin: [UInt8], in ledger: Ledger, key: inout Key
  ) throws(DeviceFolderFault) -> BulletinResult {
    let clock = SystemClock()
    var store = SessionStore(ledger: ledger, memory: TokenMemory(capacity: 1), clock: clock)
    var allowance = MailAllowance.owner
    var cryptography = OpenSSLCryptography()
    let policy = try policy(of: ledger).read().policy
    do throws(DeviceFault) {
      return try takeBulletin(
        bulletin.span, to: descriptor.deviceID, key: &key, keyID: descriptor.keyID, store: &store, policy: policy,
        realClock: clock.unixSeconds(), allowance: &allowance, using: &cryptography
      ).result
    } catch { throw .failed }
  }
}

/// The key of a device whose key is elsewhere. It opens nothing.
private struct AbsentKey: AgreementKey {
  let publicPoint: P256Point

  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    throw CryptographyFailure()
  }
}
