import HoldfastLinux
import HoldfastMeasurement

/// A reason why a vault could not be created, unlocked, changed or used. No case carries a secret.
public enum VaultFault: Error, Equatable, Sendable {
  /// A vault needs a passcode, a key file, or both.
  case noKey
  /// The number of attempts is not from 3 to 100.
  case attemptLimit
  /// A passcode has fewer than 6 bytes or more than 256. It was not tried.
  case passcodeLength
  /// The key file does not have exactly 32 bytes.
  case keyFileLength(path: String)
  /// The folder has a vault already.
  case exists
  /// The folder has no vault.
  case missing
  /// The creation of the vault was interrupted; it has never been used.
  case incomplete
  /// Neither copy of the vault's record is whole, or both belong to another host.
  case damaged
  /// The vault has no passcode.
  case noPasscode
  /// The vault has no key file.
  case noKeyFile
  /// The passcode is wrong.
  case wrongPasscode(attemptsLeft: Int)
  /// The key file is not this vault's.
  case wrongKeyFile
  /// The key that an agent or an app holds is not this vault's.
  case wrongKey
  /// The counter of attempts is missing or damaged, so passcodes are refused until it is restored.
  case attemptsDamaged
  /// The last attempt was interrupted, so passcodes are refused until the counter is restored.
  case attemptsUsed
  /// The counter of attempts is whole and has attempts left, so there is nothing to restore.
  case resetNotNeeded
  /// Too many wrong passcodes were tried, or the owner wiped the vault: its key no longer exists.
  case wiped
  /// Another process has used the vault for too long.
  case busy
  /// The change was made, but only in one of the two copies of the record.
  case copyNotWritten(FileError)
  /// The bytes do not begin as those that a vault encrypts: they are others, or were cut.
  case notEncrypted
  /// The bytes were encrypted by another vault.
  case otherVault
  /// The bytes were cut, extended or changed, or belong to another context. Only whole chunks before the fault were released.
  case contentsDamaged
  /// The input could not be read; the value is the `errno`.
  case input(Int32)
  /// The output could not be written; the value is the `errno`.
  case output(Int32)
  /// A file or folder could not be used.
  case file(FileError)
  /// The secret of this host could not be used.
  case hostSecret(HostSecretFault)
  /// The cryptographic library or the random source failed.
  case cryptography
}
