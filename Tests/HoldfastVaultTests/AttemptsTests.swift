import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastVault

@Suite struct AttemptsTests {
  @Test func `the last wrong passcode removes the key, a right one before it gives all attempts back`() throws {
    let made = try TestVault(attemptLimit: 3)
    for _ in 0..<4 {
      #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 2))
      #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 1))
      #expect(made.fault(of: rightPasscode) == nil)
    }
    #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 2))
    #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 1))
    #expect(made.fault(of: wrongPasscode) == .wiped)
    #expect(try made.names() == ["attempts"])
    #expect(made.fault(of: rightPasscode) == .wiped)
    #expect(made.faultOfKeyFile() == .wiped)
    #expect(made.faultOfRestoring(rightPasscode) == .wiped)
    _ = try made.vault.create(passcode: passcode(rightPasscode), keyFile: nil)
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test func `a failure of libcrypto costs no attempt`() throws {
    let made = try TestVault(attemptLimit: 3)
    #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 2))
    let whole = try made.contents("vault.key")
    // libcrypto refuses this cost of scrypt: N is not below 2^(128 r / 8).
    var bytes = Array(whole.dropLast(32))
    bytes.replaceSubrange(70..<73, with: [20, 1, 1])
    var key = [UInt8](repeating: 0, count: 32)
    var output = key.mutableSpan
    let secret = try #require(made.host.secret)
    try HKDF.derive(
      hash: .sha256, inputKey: secret.span, salt: bytes.span.extracting(16..<32),
      info: Array("holdfast/1 vault files".utf8).span, into: &output)
    var mac = [UInt8](repeating: 0, count: 32)
    var macBytes = mac.mutableSpan
    try HMAC.sha256.authenticate(bytes.span, key: key.span, into: &macBytes)
    for name in ["vault.key", "vault.copy"] { try made.put(bytes + mac, into: name) }
    for _ in 0..<5 { #expect(made.fault(of: wrongPasscode) == .cryptography) }
    #expect(try made.vault.status().attemptsLeft == 2)
    for name in ["vault.key", "vault.copy"] { try made.put(whole, into: name) }
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test func `an unlock with the key file neither uses attempts nor gives them back`() throws {
    let made = try TestVault(attemptLimit: 3)
    _ = made.fault(of: wrongPasscode)
    #expect(made.faultOfKeyFile() == nil)
    #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 1))
  }

  @Test func `an interrupted last attempt neither wipes nor permits, and the key file or a wait restores the counter`()
    throws
  {
    let made = try TestVault(attemptLimit: 3)
    // What a power cut leaves between the writing of an attempt and its end.
    var counters: [[UInt8]] = []
    for _ in 0..<2 {
      _ = made.fault(of: wrongPasscode)
      counters.append(try made.contents("attempts"))
    }
    try made.cutAttempt(3)
    for _ in 0..<5 { #expect(made.fault(of: rightPasscode) == .attemptsUsed) }
    #expect(made.host.waits.withLock { $0 } == [])
    #expect(made.faultOfKeyFile() == nil)
    #expect(made.fault(of: rightPasscode) == .attemptsUsed)
    #expect(made.faultOfRestoring(wrongPasscode) == .wrongPasscode(attemptsLeft: 2))
    #expect(made.fault(of: rightPasscode) == .attemptsDamaged)
    #expect(made.faultOfRestoring(rightPasscode) == nil)
    #expect(made.host.waits.withLock { $0 } == [600, 600])
    #expect(made.fault(of: rightPasscode) == nil)
    try made.cutAttempt(3)
    _ = try made.vault.restore(keyFile: made.keyFile)
    #expect(made.host.waits.withLock { $0 }.count == 2)
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test func `wrong passcodes in restoring are counted too, and as many as there are attempts wipe the vault`() throws {
    let made = try TestVault(attemptLimit: 3)
    try made.put([], into: "attempts")
    #expect(made.faultOfRestoring(wrongPasscode) == .wrongPasscode(attemptsLeft: 2))
    #expect(made.faultOfRestoring(wrongPasscode) == .wrongPasscode(attemptsLeft: 1))
    #expect(made.faultOfKeyFile() == nil)
    #expect(made.faultOfRestoring(wrongPasscode) == .wiped)
    #expect(try made.names() == ["attempts"])
    #expect(made.host.waits.withLock { $0 } == [600, 600, 600])
  }

  @Test func `a whole counter needs no restoring`() throws {
    let made = try TestVault()
    #expect(made.faultOfRestoring(rightPasscode) == .resetNotNeeded)
    #expect(throws: VaultFault.resetNotNeeded) { _ = try made.vault.restore(keyFile: made.keyFile) }
    #expect(made.host.waits.withLock { $0 } == [])
    // A new passcode restores a damaged one.
    try made.put([1], into: "attempts")
    let unlocked = try made.vault.unlock(keyFile: made.keyFile)
    try made.vault.setPasscode(passcode("another horse"), of: unlocked)
    #expect(made.fault(of: "another horse") == nil)
  }

  @Test func `a counter of another vault, or from before a new creation, is as good as none`() throws {
    let (made, other) = (try TestVault(), try TestVault())
    try made.put(try other.contents("attempts"), into: "attempts")
    #expect(made.fault(of: rightPasscode) == .attemptsDamaged)
    let host = TestHost()
    var wiped = try TestVault(host: host, attemptLimit: 3)
    for _ in 0..<3 { _ = wiped.fault(of: wrongPasscode) }
    let counter = try wiped.contents("attempts")
    wiped = try TestVault(host: host, attemptLimit: 3)
    try wiped.put(counter, into: "attempts")
    #expect(wiped.fault(of: rightPasscode) == .attemptsDamaged)
    #expect(wiped.faultOfKeyFile() == nil)
  }

  @Test func `an interrupted wiping is ended only in a turn, because a new vault may have taken the folder`() throws {
    let made = try TestVault(attemptLimit: 3)
    let record = try made.contents("vault.key")
    for _ in 0..<3 { _ = made.fault(of: wrongPasscode) }
    try made.put(record, into: "vault.key")
    var environment = made.host.environment
    environment.turnMilliseconds = 1
    let hasty = Vault(path: made.vault.path, environment: environment)
    let turns = try FolderTurns(directory: made.vault.path)
    try turns.take(orThrow: VaultFault.busy as any Error) { () throws(any Error) in
      #expect(throws: VaultFault.wiped) { _ = try hasty.unlock(keyFile: made.keyFile) }
      #expect(throws: VaultFault.wiped) { _ = try hasty.status() }
      #expect(try made.contents("vault.key") == record)
    }
    #expect(throws: VaultFault.wiped) { _ = try hasty.unlock(keyFile: made.keyFile) }
    #expect(try !made.names().contains("vault.key"))
  }

  @Test func `threads that guess at once get no more attempts than one`() throws {
    let made = try TestVault(attemptLimit: 20)
    let vault = made.vault
    let outcomes = Outcomes()
    let threads = try (0..<4).map { _ in
      try Thread {
        for _ in 0..<8 {
          var fault: VaultFault?
          do { _ = try vault.unlock(passcode: passcode(wrongPasscode)) } catch { fault = error as? VaultFault }
          outcomes.faults.withLock { $0.append(fault) }
        }
      }
    }
    for thread in threads { thread.join() }
    let found = outcomes.faults.withLock { $0 }
    let left = found.compactMap { if case .wrongPasscode(let left)? = $0 { left } else { nil } }
    #expect(left.sorted() == Array(1...19))
    #expect(found.count { $0 == .wiped } == 13)
  }

  @Test func `what has been locked for too long is busy`() throws {
    let made = try TestVault()
    var environment = made.host.environment
    environment.turnMilliseconds = 0
    let (path, inTurn) = (made.vault.path, Vault(path: made.vault.path, environment: environment))
    let faults = try FolderTurns(directory: path).take(orThrow: VaultFault.cryptography) {
      () throws(VaultFault) -> [VaultFault?] in
      do throws(VaultFault) {
        _ = try inTurn.unlock(passcode: Passcode(Array(rightPasscode.utf8).span))
        return [nil]
      } catch { return [error, made.faultOfKeyFile()] }
    }
    #expect(faults == [.busy, nil])
  }
}

extension TestVault {
  /// Leaves a counter of `count` attempts, the last of which had no end.
  func cutAttempt(_ count: Int) throws {
    let whole = try contents("attempts")
    var bytes = Array(whole[..<32]) + [0, UInt8(count)]
    let id = Array(whole[16..<32])
    let (secret, info) = (host.secret ?? [], Array("holdfast/1 vault files".utf8))
    var key = [UInt8](repeating: 0, count: 32)
    var output = key.mutableSpan
    try HKDF.derive(hash: .sha256, inputKey: secret.span, salt: id.span, info: info.span, into: &output)
    var mac = [UInt8](repeating: 0, count: 32)
    var code = mac.mutableSpan
    try HMAC.sha256.authenticate(bytes.span, key: key.span, into: &code)
    bytes += mac
    try put(bytes, into: "attempts")
  }
}

private final class Outcomes: Sendable {
  let faults = Mutex<[VaultFault?]>([])
}
