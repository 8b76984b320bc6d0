import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import PowerCut
import Synchronization
import TestSupport

import HoldfastVault

/// The host of a test: its secret, random bytes that repeat, a cheap passcode, and the waits that were asked for.
final class TestHost: Sendable {
  let secret: [UInt8]?
  let waits = Mutex<[Int]>([])
  private let random: Mutex<TestRandom>

  private static let count = Atomic<UInt64>(0)

  /// Creates a host whose random bytes are no other's; one without a secret has nil.
  init(secret: [UInt8]? = [UInt8](0..<32)) {
    self.secret = secret
    random = Mutex(TestRandom(state: Self.count.add(1, ordering: .relaxed).newValue))
  }

  var environment: VaultEnvironment {
    VaultEnvironment(
      hostSecret: { [self] (_) throws(HostSecretFault) in
        guard let secret else { throw .missing }
        return Secret<32>(copying: secret.span)!
      },
      fill: { [self] (bytes) throws(RandomFailure) in
        var fresh = [UInt8](repeating: 0, count: bytes.count)
        random.withLock { random in
          var span = fresh.mutableSpan
          try? random.fill(&span)
        }
        for index in bytes.indices { bytes[index] = fresh[index] }
      },
      cost: ScryptCost(logarithm: 1, blockSize: 1, parallelization: 1)!,
      wait: { [self] seconds in waits.withLock { $0.append(seconds) } }, turnMilliseconds: 20_000)
  }
}

func passcode(_ text: String) throws -> Passcode { try Passcode(Array(text.utf8).span) }

let rightPasscode = "correct horse"
let wrongPasscode = "wrong horse"

/// A folder with a vault that has a passcode and a key file.
final class TestVault {
  let place: TemporaryFolder
  let host: TestHost
  let vault: Vault
  let keyFile: String

  init(host: TestHost = TestHost(), attemptLimit: Int = 10, passcode text: String? = rightPasscode) throws {
    place = try TemporaryFolder(in: memoryFolder)
    self.host = host
    keyFile = place.file("key")
    vault = Vault(path: place.file("v"), environment: host.environment)
    try KeyFile.create(at: keyFile, environment: host.environment)
    var code: Passcode?
    if let text { code = try passcode(text) }
    _ = try vault.create(passcode: code.take(), keyFile: keyFile, attemptLimit: attemptLimit)
  }

  /// Returns the fault of an unlock with a passcode; nil if it succeeds.
  func fault(of text: String) -> VaultFault? {
    do {
      _ = try vault.unlock(passcode: passcode(text))
      return nil
    } catch { return error as? VaultFault }
  }

  func faultOfKeyFile() -> VaultFault? {
    do throws(VaultFault) {
      _ = try vault.unlock(keyFile: keyFile)
      return nil
    } catch { return error }
  }

  func faultOfRestoring(_ text: String) -> VaultFault? {
    do {
      _ = try vault.restore(passcode: passcode(text))
      return nil
    } catch { return error as? VaultFault }
  }

  func contents(_ name: String) throws -> [UInt8] { try place.contents("v/\(name)") }

  func put(_ bytes: [UInt8], into name: String) throws { try place.makeFile("v/\(name)", bytes) }

  func names() throws -> [String] { try Files.names(inFolder: vault.path, limit: 100) }
}
