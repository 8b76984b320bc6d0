import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A vault: a folder with a random key that encrypts files and small values of an app. The key is wrapped by a passcode, by a
/// key file, or by each of them, and always by the secret of this host.
///
/// Several processes may use a vault at once. Functions block their thread, an unlock with a passcode for about a quarter of a
/// second: call them from a thread of your own, not from a task.
public struct Vault: Sendable {
  /// The path of the folder.
  public let path: String
  let files: VaultFiles
  let environment: VaultEnvironment

  /// The number of wrong passcodes after which a vault is wiped, unless its owner chose another.
  public static let defaultAttemptLimit = 10
  /// The numbers of attempts that an owner may choose.
  public static let attemptLimits = 3...100
  /// The seconds that ``restore(passcode:)`` waits before it tries the passcode.
  public static let restoreSeconds = 600

  /// Names a vault. Nothing is read or written yet.
  ///
  /// - Parameter path: The vault's own folder, which nothing else uses.
  public init(path: String) { self.init(path: path, environment: .system) }

  package init(path: String, environment: VaultEnvironment) {
    (self.path, files, self.environment) = (path, VaultFiles(folder: path), environment)
  }

  /// Creates the vault, and the host's secret if there is none. Everything is on the disk when this returns.
  ///
  /// An interrupted creation may be repeated. A vault that was wiped may be created anew, with another key.
  ///
  /// - Parameters:
  ///   - passcode: The passcode; nil for none.
  ///   - keyFile: The path of an existing file of 32 random bytes, private to this user; nil for none.
  ///   - attemptLimit: The number of wrong passcodes after which the vault is wiped, 3 to 100.
  /// - Returns: The vault, unlocked.
  /// - Throws: ``VaultFault/noKey`` without passcode and key file, ``VaultFault/attemptLimit``, ``VaultFault/exists``,
  ///   ``VaultFault/keyFileLength(path:)``, ``VaultFault/file(_:)``, ``VaultFault/hostSecret(_:)``, ``VaultFault/busy``,
  ///   ``VaultFault/cryptography``.
  public func create(
    passcode: consuming Passcode?, keyFile: String?, attemptLimit: Int = defaultAttemptLimit
  ) throws(VaultFault) -> UnlockedVault {
    guard Self.attemptLimits.contains(attemptLimit) else { throw .attemptLimit }
    let secret: SecretBytes? = if let keyFile { try KeyFile.read(keyFile) } else { nil }
    let host = try environment.secretOfHost(creating: true)
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path, isBackedUp: false)
      try FolderKind.vault.require(ofFolder: path)
    } catch { throw .file(error) }
    let id: VaultID = try environment.fixedBytes()
    let key = try environment.freshKey()
    var record = VaultRecord(
      id: id,
      keyCheck: try cryptographic { () throws(CryptographyFailure) in
        try KeyWrapping.check(of: key, id: id)
      })
    if let passcode { record.passcode = try slot(key, of: id, passcode, attemptLimit, host) }
    if let secret { record.keyFile = try slot(key, of: id, secret, host) }
    guard record.passcode != nil || record.keyFile != nil else { throw .noKey }
    try takingTurn { () throws(VaultFault) in
      try begin(host)
      try files.write(.counted(0), id: id, for: host)
      try files.write(record, for: host)
      do throws(FileError) { try IncompleteFolder.unmark(path) } catch { throw .file(error) }
    }
    return UnlockedVault(id: id, key: key, fill: environment.fill)
  }

  /// Marks the folder as incomplete, after checking that no vault is lost thereby.
  private func begin(_ host: borrowing Secret<32>) throws(VaultFault) {
    do throws(FileError) {
      if try !IncompleteFolder.isHalfMade(path), files.hasFiles {
        guard try isWiped(host) else { throw FileError(.exists, at: path) }
      }
      try IncompleteFolder.mark(path, as: .vault)
    } catch { throw error.kind == .exists ? .exists : .file(error) }
  }

  /// Whether the vault was wiped and holds no key any more.
  private func isWiped(_ host: borrowing Secret<32>) throws(FileError) -> Bool {
    do throws(VaultFault) {
      _ = try files.record(for: host)
      return false
    } catch { return error == .wiped }
  }
}

extension Vault {
  /// Unlocks the vault with its passcode. The attempt is on the disk before the passcode is tried.
  ///
  /// - Parameter passcode: The passcode. A wrong one counts; the last one that may be wrong wipes the vault.
  /// - Throws: ``VaultFault/wrongPasscode(attemptsLeft:)``, ``VaultFault/wiped``; before anything is tried
  ///   ``VaultFault/noPasscode``, ``VaultFault/attemptsDamaged``, ``VaultFault/attemptsUsed``, ``VaultFault/missing``,
  ///   ``VaultFault/incomplete``, ``VaultFault/damaged``, ``VaultFault/busy``, ``VaultFault/file(_:)`` (also if the attempt
  ///   cannot be written down), ``VaultFault/hostSecret(_:)``; ``VaultFault/cryptography``, which costs no attempt.
  public func unlock(passcode: borrowing Passcode) throws(VaultFault) -> UnlockedVault {
    let host = try environment.secretOfHost()
    return try takingTurn { () throws(VaultFault) in
      let found = try foundRecord(host)
      guard let slot = found.record.passcode else { throw .noPasscode }
      guard case .counted(let count)? = try attempts(of: found.record, host) else { throw .attemptsDamaged }
      guard count < slot.attemptLimit else { throw .attemptsUsed }
      return try unlock(
        found, slot, passcode, host, attempt: count + 1, writing: { .counted($0) })
    }
  }

  /// Restores a counter of attempts that is damaged, or whose last attempt was interrupted, with the right passcode.
  ///
  /// The call first waits ``restoreSeconds``, during which no other process can use the vault's passcode. A wrong passcode leaves the
  /// counter as unusable as it was; after as many of them as the vault has attempts, it is wiped.
  ///
  /// - Throws: ``VaultFault/resetNotNeeded`` at once; otherwise the errors of ``unlock(passcode:)``.
  public func restore(passcode: borrowing Passcode) throws(VaultFault) -> UnlockedVault {
    let host = try environment.secretOfHost()
    return try takingTurn { () throws(VaultFault) in
      let found = try foundRecord(host)
      guard let slot = found.record.passcode else { throw .noPasscode }
      var restoreCount = 0
      switch try attempts(of: found.record, host) {
      case .counted(let count)?: guard count >= slot.attemptLimit else { throw .resetNotNeeded }
      case .suspended(let count)?: restoreCount = count
      case .wiped?, nil: break
      }
      guard restoreCount < slot.attemptLimit else { throw .attemptsUsed }
      environment.wait(Self.restoreSeconds)
      return try unlock(found, slot, passcode, host, attempt: restoreCount + 1, writing: { .suspended($0) })
    }
  }

  /// Writes an attempt down, tries it, and writes down its end.
  private func unlock(
    _ found: VaultFiles.FoundRecord, _ slot: VaultRecord.PasscodeSlot, _ passcode: borrowing Passcode,
    _ host: borrowing Secret<32>, attempt: Int, writing state: (Int) -> Attempts
  ) throws(VaultFault) -> UnlockedVault {
    let record = found.record
    try files.write(state(attempt), id: record.id, for: host)
    let key: SecretBytes?
    do throws(CryptographyFailure) {
      key = try KeyWrapping.key(of: record, slot, passcode: passcode, host: host)
    } catch {
      // libcrypto failed before the passcode was judged. If this cannot be written, the attempt stays counted.
      try? files.write(state(attempt - 1), id: record.id, for: host)
      throw .cryptography
    }
    guard let key else {
      guard attempt >= slot.attemptLimit else { throw .wrongPasscode(attemptsLeft: slot.attemptLimit - attempt) }
      try files.write(.wiped, id: record.id, for: host)
      try files.eraseKeys()
      throw .wiped
    }
    try files.write(.counted(0), id: record.id, for: host)
    files.repair(found, for: host)
    return UnlockedVault(id: record.id, key: key, fill: environment.fill)
  }

  /// Unlocks the vault with its key file. Attempts are neither counted nor given back, so that an app that does this often does
  /// not help anyone to guess the passcode.
  ///
  /// - Parameter keyFile: The path of the key file.
  /// - Throws: ``VaultFault/wrongKeyFile``, ``VaultFault/noKeyFile``, ``VaultFault/keyFileLength(path:)``,
  ///   ``VaultFault/wiped``, ``VaultFault/missing``, ``VaultFault/incomplete``, ``VaultFault/damaged``,
  ///   ``VaultFault/file(_:)``, ``VaultFault/hostSecret(_:)``, ``VaultFault/cryptography``.
  public func unlock(keyFile: String) throws(VaultFault) -> UnlockedVault {
    let secret = try KeyFile.read(keyFile)
    let host = try environment.secretOfHost()
    let found = try currentRecord(host)
    let key = try key(of: found.record, secret, host)
    if !found.staleNames.isEmpty { try? takingTurn { () throws(VaultFault) in try repair(host) } }
    return UnlockedVault(id: found.record.id, key: key, fill: environment.fill)
  }

  /// Restores the counter of attempts with the key file, at once.
  ///
  /// - Throws: The errors of ``unlock(keyFile:)``; ``VaultFault/resetNotNeeded``, ``VaultFault/busy``.
  public func restore(keyFile: String) throws(VaultFault) -> UnlockedVault {
    let secret = try KeyFile.read(keyFile)
    let host = try environment.secretOfHost()
    return try takingTurn { () throws(VaultFault) in
      let found = try foundRecord(host)
      let key = try key(of: found.record, secret, host)
      if let slot = found.record.passcode, case .counted(let count)? = try attempts(of: found.record, host),
        count < slot.attemptLimit
      {
        throw .resetNotNeeded
      }
      try files.write(.counted(0), id: found.record.id, for: host)
      files.repair(found, for: host)
      return UnlockedVault(id: found.record.id, key: key, fill: environment.fill)
    }
  }

  /// Takes a key that an agent holds for this vault.
  ///
  /// - Throws: ``VaultFault/wrongKey``, and the errors of ``unlock(keyFile:)``.
  package func unlock(heldKey: consuming SecretBytes) throws(VaultFault) -> UnlockedVault {
    let record = try currentRecord(try environment.secretOfHost()).record
    let key = heldKey
    guard key.count == 32, try isKey(key, of: record) else { throw .wrongKey }
    return UnlockedVault(id: record.id, key: key, fill: environment.fill)
  }

  private func repair(_ host: borrowing Secret<32>) throws(VaultFault) {
    files.repair(try foundRecord(host), for: host)
  }

  private func key(
    of record: VaultRecord, _ secret: borrowing SecretBytes, _ host: borrowing Secret<32>
  ) throws(VaultFault) -> SecretBytes {
    guard let slot = record.keyFile else { throw .noKeyFile }
    let key: SecretBytes?
    do throws(CryptographyFailure) {
      key = try KeyWrapping.key(of: record, slot, keyFile: secret, host: host)
    } catch { throw .cryptography }
    guard let key else { throw .wrongKeyFile }
    return key
  }
}

extension Vault {
  /// Reads the record without a turn. If a wiping was interrupted, it is ended in a turn: another process may have made a new vault
  /// meanwhile, whose keys must not be erased.
  func currentRecord(_ host: borrowing Secret<32>) throws(VaultFault) -> VaultFiles.FoundRecord {
    let found = try files.record(for: host)
    guard try attempts(of: found.record, host) == .wiped else { return found }
    do throws(VaultFault) { return try takingTurn { () throws(VaultFault) in try foundRecord(host) } } catch {
      // Another process is ending it.
      if case .busy = error { throw .wiped }
      throw error
    }
  }

  /// Reads the record in a turn. If a wiping was interrupted, it is ended first.
  func foundRecord(_ host: borrowing Secret<32>) throws(VaultFault) -> VaultFiles.FoundRecord {
    let found = try files.record(for: host)
    if try attempts(of: found.record, host) == .wiped {
      try files.eraseKeys()
      throw .wiped
    }
    return found
  }

  /// Reads the counter; nil if it is missing, damaged, or another vault's.
  func attempts(of record: VaultRecord, _ host: borrowing Secret<32>) throws(VaultFault) -> Attempts? {
    guard let found = try files.attempts(host), found.id == record.id else { return nil }
    return found.attempts
  }

  func isKey(_ key: borrowing SecretBytes, of record: VaultRecord) throws(VaultFault) -> Bool {
    do throws(CryptographyFailure) {
      return constantTimeEqual(try KeyWrapping.check(of: key, id: record.id).bytes, record.keyCheck.bytes)
    } catch { throw .cryptography }
  }

  /// Wraps a key with a passcode and a fresh salt.
  func slot(
    _ key: borrowing SecretBytes, of id: VaultID, _ passcode: borrowing Passcode, _ attemptLimit: Int,
    _ host: borrowing Secret<32>
  ) throws(VaultFault) -> VaultRecord.PasscodeSlot {
    let salt: FixedBytes<32> = try environment.fixedBytes()
    do throws(CryptographyFailure) {
      return try KeyWrapping.slot(
        key, id: id, passcode: passcode, attemptLimit: attemptLimit, cost: environment.cost, salt: salt, host: host)
    } catch { throw .cryptography }
  }

  /// Wraps a key with the bytes of a key file and a fresh salt.
  func slot(
    _ key: borrowing SecretBytes, of id: VaultID, _ secret: borrowing SecretBytes, _ host: borrowing Secret<32>
  ) throws(VaultFault) -> VaultRecord.KeyFileSlot {
    let salt: FixedBytes<32> = try environment.fixedBytes()
    do throws(CryptographyFailure) {
      return try KeyWrapping.slot(key, id: id, keyFile: secret, salt: salt, host: host)
    } catch { throw .cryptography }
  }

  /// Runs `body` while no other process changes the vault or tries a passcode.
  func takingTurn<Result: ~Copyable>(_ body: () throws(VaultFault) -> Result) throws(VaultFault) -> Result {
    let turns: FolderTurns
    do throws(FileError) { turns = try FolderTurns(directory: path) } catch {
      throw error.kind == .notFound ? .missing : .file(error)
    }
    return try turns.take(timeoutMilliseconds: environment.turnMilliseconds, orThrow: VaultFault.busy, body)
  }
}

/// Runs a cryptographic step and converts its failure.
func cryptographic<Result: ~Copyable>(
  _ body: () throws(CryptographyFailure) -> Result
) throws(VaultFault) -> Result {
  do throws(CryptographyFailure) { return try body() } catch { throw .cryptography }
}
