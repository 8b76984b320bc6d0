import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastVault
import TestSupport

/// A vault whose key and host's secret are secret: opened by a key file and by a key that an agent holds, data encrypted and decrypted.
func vault() throws -> Bool {
  let place = try TemporaryFolder()
  let host = [UInt8](0..<32)
  let environment = VaultEnvironment(
    hostSecret: { (_) throws(HostSecretFault) in marked(host) },
    fill: { (bytes) throws(RandomFailure) in
      var random = SystemRandom()
      try random.fill(&bytes)
    },
    cost: ScryptCost(logarithm: 1, blockSize: 1, parallelization: 1)!, wait: { _ in }, turnMilliseconds: 20_000)
  let keyFile = place.file("key")
  try KeyFile.create(at: keyFile, environment: environment)
  let vault = Vault(path: place.file("vault"), environment: environment)
  _ = try vault.create(passcode: Passcode?.none, keyFile: keyFile)
  let key = try vault.unlock(keyFile: keyFile).copiedKey()
  key.withBytes { mark($0) }
  return try keeps(try vault.unlock(heldKey: key))
}

/// Returns whether data is the same after encryption and decryption, and changed data is refused.
private func keeps(_ unlocked: borrowing UnlockedVault) throws -> Bool {
  let plain = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
  let data: [UInt8] = marked(plain)
  var sealed = try unlocked.encrypted(data.span)
  // Anyone may see it.
  reveal(sealed.span)
  let decrypted = try unlocked.decrypted(sealed)
  sealed[sealed.count - 1] ^= 1
  let changed: [UInt8]? = try? unlocked.decrypted(sealed)
  return constantTimeEqual(decrypted.span, plain.span) && changed == nil
}
