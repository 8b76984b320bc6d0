/// A record with what stands beside it in the file.
struct StoredRecord {
  var record: Record
  /// Nil where it was erased and no other has taken its place yet.
  var secret: BlindedSecret?
  /// The secret as it was before a change, encrypted under the undo code.
  var undo: [UInt8]?
  /// What the device was challenged with, as 16 hexadecimal digits; nil once that has served.
  var clientChallenge: String?

  /// The secret, of a record that may be used.
  func usableSecret() throws(AuthenticatorFault) -> BlindedSecret {
    guard record.isConfirmed else { throw .notConfirmed }
    guard let secret else { throw .interrupted }
    return secret
  }
}
