import HoldfastCore
import HoldfastLinux
import HoldfastStorage

/// The reasons why the authenticator refused an operation. It then showed no code, and no secret was lost.
public enum AuthenticatorFault: Error, Equatable {
  // The folder and its file.

  /// There is no authenticator in the folder.
  case missing
  /// The folder could not be used or created, or is of another kind.
  case folder(FileError)
  /// The group or others have access to the file, or it belongs to another user.
  case tooOpen
  /// The file does not hold the data that was written to it.
  case corrupt
  /// The file belongs to another application.
  case foreign
  /// A later version of the program wrote the file.
  case newerVersion
  /// The app's store holds an older state than one that was seen before.
  case rolledBack
  /// Another process locked the file for too long, or changed the record meanwhile.
  case busy
  /// The disk is full.
  case diskFull
  /// The file or its file system is read-only.
  case readOnly
  /// The system, the random source or the cryptographic library failed.
  case failed

  // Choosing a record.

  /// The authenticator has no records.
  case noRecords
  /// There is no such record.
  case unknownRecord
  /// There are several users, so the caller must name one.
  case severalUsers
  /// The user has several records of the kind, so the caller must name one.
  case severalRecords
  /// There is already a record with that user and index.
  case exists
  /// The same secret would be stored twice, at least once blinded. A PIN could then be tested by whether both yield the
  /// same secret.
  case secretTwice
  /// The activation that made the record was never confirmed.
  case notConfirmed
  /// New secrets wait whose activation ended without an answer, so that nobody knows yet whether the device has them.
  case unknownEnd
  /// A user's name is empty, is too long, or has control characters.
  case badUser
  /// An index is not from 1 to 8.
  case badIndex
  /// The method does not suit the record's purpose.
  case unsuitableMethod
  /// A secret is empty or too long, or a number is out of range.
  case badRecord
  /// Text is not the URI of an account, or a value in it is out of range.
  case malformedAccount

  // Using a record.

  /// The time is before 1970 or after 2106-02-07.
  case clockOutOfRange
  /// There is no next counter.
  case counterExhausted
  /// The next counter is beyond the device's look-ahead window.
  case notSynchronised
  /// The record takes no question, requires one, or the question is malformed.
  case badQuestion
  /// There is no challenge that the device could have answered, or it was already used.
  case noChallenge
  /// The inputs do not match the record's protection; the value has those that it requires.
  case protectionMismatch(ProtectionInputs)
  /// The record is bound to another host.
  case otherHost

  // Changing the protection.

  /// The new PIN breaks a rule.
  case weakPIN(PINFault)
  /// The protection is weaker than the device's owner demands, or the secret would leave it; the value is the demand.
  case demanded(ProtectionDemand)
  /// The last change is neither confirmed nor undone.
  case changeOpen
  /// There is nothing to confirm or undo.
  case noChange
  /// A change or an import was interrupted after the old secret was erased. The undo code, or repeating the import,
  /// restores it.
  case interrupted
  /// The text is not an undo code, or it was mistyped.
  case malformedUndoCode
  /// The undo code belongs to another change.
  case wrongUndoCode

  // State strings.

  /// The passphrase is shorter than 8 characters, has only digits, or is too long.
  case weakPassphrase
  /// The text is not a state string, or some of its characters are missing or wrong.
  case malformedState
  /// The passphrase is not the one that encrypted the state.
  case wrongPassphrase
  /// The authenticator already has records.
  case notEmpty
}

extension AuthenticatorFault {
  init(_ error: DatabaseError) {
    self =
      switch error {
      case .corrupt, .wrongType, .constraint: .corrupt
      case .foreign: .foreign
      case .newerVersion: .newerVersion
      case .cannotOpen: .missing
      case .permission: .tooOpen
      case .readOnly: .readOnly
      case .full: .diskFull
      case .busy: .busy
      case .outOfRange, .misuse, .other: .failed
      }
  }
}
