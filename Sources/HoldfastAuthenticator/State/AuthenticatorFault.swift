import HoldfastStorage

/// Why the authenticator did not do what it was asked for. Nothing was shown and nothing was lost then.
package enum AuthenticatorFault: Error, Equatable {
  // The folder and its file.

  /// There is no such folder, or no authenticator in it.
  case missing
  /// There is something else than a folder.
  case notFolder
  /// The group or others may use the folder or its file, or the system refuses.
  case noPermission
  /// The folder or its file is open to others, or the file belongs to another user.
  case tooOpen
  /// The folder belongs to another user.
  case wrongOwner
  /// The file does not hold what was written there.
  case corrupt
  /// The file is another application's.
  case foreign
  /// A later version of the program wrote the file.
  case newerVersion
  /// Another process held the file for too long, or changed the record meanwhile.
  case busy
  case diskFull
  /// The file or its file system is read-only.
  case readOnly
  /// The folder could not be made.
  case folder(FileError)
  /// The system, the random source or the cryptographic library failed.
  case failed

  // Which record.

  case noRecords
  case unknownRecord
  /// There are several users: it must be said which one.
  case severalUsers
  /// The user has several records of the kind: it must be said which one.
  case severalRecords
  /// There is a record of that user and index.
  case exists
  /// The same secret would be stored twice, once of these blinded: a PIN could be tested by whether both give the same.
  case secretTwice
  /// The activation that made it was never confirmed.
  case notConfirmed
  /// A user's name is empty, too long, or has control characters.
  case badUser
  /// An index is not from 1 to 8.
  case badIndex
  /// The method is of no use for the record's purpose.
  case unsuitableMethod
  /// A secret has no bytes or too many, or a number is out of its range.
  case badRecord

  // Using one.

  /// Before 1970, or after 2106-02-07.
  case clockOutOfRange
  /// There is no next counter.
  case counterExhausted
  /// The next counter is beyond what the device looks at.
  case notSynchronised
  /// The record takes no question, or there must be one, or it is malformed.
  case badQuestion
  /// There is no challenge that the device could have answered, or it has served already.
  case noChallenge
  /// What was given is not what the record is protected by: that is this.
  case protectionMismatch(PINMode)

  // Changing the protection.

  case weakPIN(PINFault)
  /// The last change is neither confirmed nor undone.
  case changeOpen
  /// There is nothing to confirm or to undo.
  case noChange
  /// A change or an import was interrupted after the old secret was erased: the undo code, or the import again, brings it back.
  case interrupted
  case malformedUndoCode
  /// The undo code is another change's.
  case wrongUndoCode

  // State strings.

  /// Shorter than 8 characters, nothing but digits, or too long.
  case weakPassphrase
  /// It is no state string, or characters of it are missing or wrong.
  case malformedState
  /// The passphrase is another one.
  case wrongPassphrase
  /// There are records already.
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

  /// What went wrong with the folder itself.
  init(_ error: FileError) {
    self =
      switch error.kind {
      case .notFound: .missing
      case .symbolicLink, .notDirectory, .notRegular, .isDirectory: .notFolder
      case .tooOpen: .tooOpen
      case .wrongOwner: .wrongOwner
      case .noPermission: .noPermission
      case .diskFull: .diskFull
      case .readOnly, .exists, .tooLarge, .locked, .anotherKind, .other: .folder(error)
      }
  }
}
