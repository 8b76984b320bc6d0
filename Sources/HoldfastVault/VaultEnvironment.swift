import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The services of the host that a vault needs. Tests supply their own.
package struct VaultEnvironment: Sendable {
  /// Returns the secret of this host, and creates it first where `creating` is true.
  package var hostSecret: @Sendable (_ creating: Bool) throws(HostSecretFault) -> Secret<32>
  /// Fills bytes from a random source.
  package var fill: @Sendable (inout MutableSpan<UInt8>) throws(RandomFailure) -> Void
  /// The cost of a new passcode.
  package var cost: ScryptCost
  /// Waits for that many seconds.
  package var wait: @Sendable (_ seconds: Int) -> Void
  /// The longest wait for another process that uses the vault, in milliseconds.
  package var turnMilliseconds: Int

  /// Creates an environment.
  package init(
    hostSecret: @escaping @Sendable (_ creating: Bool) throws(HostSecretFault) -> Secret<32>,
    fill: @escaping @Sendable (inout MutableSpan<UInt8>) throws(RandomFailure) -> Void, cost: ScryptCost,
    wait: @escaping @Sendable (_ seconds: Int) -> Void, turnMilliseconds: Int
  ) {
    (self.hostSecret, self.fill, self.cost) = (hostSecret, fill, cost)
    (self.wait, self.turnMilliseconds) = (wait, turnMilliseconds)
  }

  /// This host. An unlock takes about a quarter of a second and 64 MiB.
  package static let system = VaultEnvironment(
    hostSecret: { (creating) throws(HostSecretFault) in
      let secret = try HostSecret(HostFiles())
      return creating ? try secret.readOrCreate() : try secret.read()
    },
    fill: { (bytes) throws(RandomFailure) in
      var random = SystemRandom()
      try random.fill(&bytes)
    },
    cost: ScryptCost(logarithm: 16, blockSize: 8, parallelization: 1)!,
    wait: { seconds in
      let deadline = Deadline(afterMilliseconds: seconds * 1000)
      while !deadline.hasPassed { usleep(useconds_t(min(deadline.remainingMilliseconds, 500) * 1000)) }
    },
    turnMilliseconds: 10_000)

  /// Returns fresh bytes that are public.
  func fixedBytes<let count: Int>() throws(VaultFault) -> FixedBytes<count> {
    var fresh = FixedBytes<count>()
    var bytes = fresh.mutableBytes
    do throws(RandomFailure) { try fill(&bytes) } catch { throw .cryptography }
    return fresh
  }

  /// Returns 32 fresh bytes that are secret.
  func freshKey() throws(VaultFault) -> SecretBytes {
    var fresh = SecretBytes(zeros: 32)
    var bytes = fresh.mutableBytes
    do throws(RandomFailure) { try fill(&bytes) } catch { throw .cryptography }
    return fresh
  }

  func secretOfHost(creating: Bool = false) throws(VaultFault) -> Secret<32> {
    do throws(HostSecretFault) { return try hostSecret(creating) } catch { throw .hostSecret(error) }
  }
}
