import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

extension Vault {
  /// Replaces the passcode, and restores the counter of attempts. What was encrypted stays readable, because the key stays.
  ///
  /// - Parameters:
  ///   - unlocked: This vault, unlocked.
  ///   - passcode: The new passcode; nil to have none, which requires a key file.
  ///   - attemptLimit: The new number of wrong passcodes after which the vault is wiped; nil to keep the present one.
  /// - Throws: ``VaultFault/wrongKey`` if another vault is unlocked; ``VaultFault/noKey``, ``VaultFault/attemptLimit``,
  ///   ``VaultFault/wiped``, ``VaultFault/damaged``, ``VaultFault/busy``, ``VaultFault/file(_:)``,
  ///   ``VaultFault/copyNotWritten(_:)``, ``VaultFault/hostSecret(_:)``, ``VaultFault/cryptography``.
  public func setPasscode(
    _ passcode: consuming Passcode?, of unlocked: borrowing UnlockedVault, attemptLimit: Int? = nil
  ) throws(VaultFault) {
    if let attemptLimit, !Self.attemptLimits.contains(attemptLimit) { throw .attemptLimit }
    let host = try environment.secretOfHost()
    let before = try currentRecord(host).record
    guard try isKey(unlocked.key, of: before) else { throw .wrongKey }
    let limit = attemptLimit ?? before.passcode?.attemptLimit ?? Self.defaultAttemptLimit
    // The wrapping takes long, so it is done before the turn.
    var slot: VaultRecord.PasscodeSlot?
    if let passcode { slot = try self.slot(unlocked.key, of: before.id, passcode, limit, host) }
    try change(of: unlocked, host) { $0.passcode = slot }
  }

  /// Replaces the key file. The counter of attempts is restored as well.
  ///
  /// - Parameters:
  ///   - path: The path of an existing file of 32 random bytes; nil to have none, which requires a passcode.
  ///   - unlocked: This vault, unlocked.
  /// - Throws: The errors of ``setPasscode(_:of:attemptLimit:)``; ``VaultFault/keyFileLength(path:)``.
  public func setKeyFile(_ path: String?, of unlocked: borrowing UnlockedVault) throws(VaultFault) {
    let host = try environment.secretOfHost()
    var slot: VaultRecord.KeyFileSlot?
    if let path { slot = try self.slot(unlocked.key, of: unlocked.id, try KeyFile.read(path), host) }
    try change(of: unlocked, host) { $0.keyFile = slot }
  }

  private func change(
    of unlocked: borrowing UnlockedVault, _ host: borrowing Secret<32>, _ body: (inout VaultRecord) -> Void
  ) throws(VaultFault) {
    try takingTurn { () throws(VaultFault) in
      var record = try foundRecord(host).record
      guard try isKey(unlocked.key, of: record) else { throw .wrongKey }
      body(&record)
      guard record.passcode != nil || record.keyFile != nil else { throw .noKey }
      // At one change in a second, the numbers last for 136 years.
      record.revision += 1
      try files.write(record, for: host)
      try files.write(.counted(0), id: record.id, for: host)
    }
  }

  /// Removes the key for good: nothing that this vault encrypted can be read any more. It is on the disk when this returns.
  ///
  /// The files are overwritten before they are removed, which a journaling or copying file system, or a flash disk, may not do in
  /// place. A damaged or incomplete vault is removed too. The folder itself is removed if nothing else is in it.
  ///
  /// - Throws: ``VaultFault/missing``, ``VaultFault/busy``, ``VaultFault/file(_:)``. The call may be repeated.
  public func wipe() throws(VaultFault) {
    do throws(FileError) {
      try Files.requirePrivateFolder(at: path)
      guard try FolderKind.kind(ofFolder: path) == .vault else { throw FileError(.notFound, at: path) }
    } catch { throw error.kind == .notFound ? .missing : .file(error) }
    try takingTurn { () throws(VaultFault) in
      markAsWiped()
      try files.eraseKeys()
      try files.removeFolder()
    }
  }

  /// Marks the vault, so that an interrupted wiping is ended by the next use. Without the host's secret it is useless anyway.
  private func markAsWiped() {
    guard let host = try? environment.secretOfHost() else { return }
    let id = (try? files.record(for: host))?.record.id ?? (try? files.attempts(host))?.id
    if let id { try? files.write(.wiped, id: id, for: host) }
  }

  /// The state of a vault, as anyone who may read the folder can know it.
  public struct Status: Sendable, Equatable {
    /// Whether the vault has a passcode.
    public let hasPasscode: Bool
    /// Whether the vault has a key file.
    public let hasKeyFile: Bool
    /// The number of wrong passcodes after which the vault is wiped; nil without a passcode.
    public let attemptLimit: Int?
    /// The number of passcodes that can still be tried; nil if passcodes are refused until the counter is restored.
    public let attemptsLeft: Int?
    /// Whether both copies of the record are whole and equal.
    public let hasBothCopies: Bool
    /// The id of the vault: 16 random bytes, also in the header of everything that it encrypts.
    public let id: [UInt8]
  }

  /// Returns what can be known about the vault without unlocking it.
  ///
  /// - Throws: ``VaultFault/missing``, ``VaultFault/incomplete``, ``VaultFault/wiped``, ``VaultFault/damaged``,
  ///   ``VaultFault/file(_:)``, ``VaultFault/hostSecret(_:)``, ``VaultFault/cryptography``.
  public func status() throws(VaultFault) -> Status {
    let host = try environment.secretOfHost()
    let found = try currentRecord(host)
    let limit = found.record.passcode?.attemptLimit
    var left: Int?
    if let limit, case .counted(let count)? = try attempts(of: found.record, host), count < limit {
      left = limit - count
    }
    return Status(
      hasPasscode: limit != nil, hasKeyFile: found.record.keyFile != nil, attemptLimit: limit, attemptsLeft: left,
      hasBothCopies: found.staleNames.isEmpty, id: [UInt8](found.record.id.bytes))
  }
}
