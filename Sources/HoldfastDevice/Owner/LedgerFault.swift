import HoldfastStorage

/// Why a ledger could not do what it was asked.
public enum LedgerFault: Error, Equatable {
  /// Its file could not be read or written.
  case failed
  /// It holds what was never written: its file was damaged, or changed by somebody else.
  case damaged
  /// The image of a device's flash could not be written.
  case unwritable(FileError)
  /// Another process held it for too long.
  case busy
  /// There are as many trusted issuers already as there may be.
  case tooManyIssuers
  /// Another issuer's key has the same key id.
  case keyIDTaken
  /// An integer is at most 2^53 - 1.
  case floorOutOfRange
  /// A floor in flash only rises.
  case floorOnlyRises
  /// No issuer of that key id is trusted, and none was.
  case unknownIssuer
  /// There is a user of that name already.
  case userExists
  /// There is no user of that name.
  case unknownUser
  /// There are as many users as there may be.
  case tooManyUsers
  /// As many of the owner's codes as there may be wait to be used.
  case tooManyCodes
  /// The device cannot verify codes that are made this way.
  case unsupportedMethod
  /// A microcontroller would take too long to look for codes of such short time steps.
  case timeStepTooShort
  /// It is not the newest one, as the counter that anchors it tells.
  case rolledBack
  /// The counter that anchors it could not be used.
  case counter(CounterFault)
}
