import HoldfastCore

extension DeviceFolder {
  /// Returns the device's users and their spare authenticators, by name, whether or not the device is being served.
  ///
  /// - Throws: ``DeviceFolderFault`` if the folder cannot be used, ``LedgerFault`` if its ledger cannot be read.
  public func users() throws -> [EnrolledUser] {
    try openLedger().users().map { user in
      EnrolledUser(
        name: user.name, spareOf: user.main, demand: user.demand, otp: user.record.accounts[.otp],
        seal: user.record.accounts[.seal], failureCount: user.record.failureCount, lockedUntil: user.record.lockedUntil)
    }
  }
}

/// A user of a device, or a spare authenticator of one, without secrets.
public struct EnrolledUser: Sendable, Equatable {
  /// The name under which codes are given, at most 32 bytes.
  public let name: BoundedText<32>
  /// The user to whom this spare authenticator belongs; nil for the user's first authenticator.
  public let spareOf: BoundedText<32>?
  /// The protection that the owner demanded when it was activated; nil for none.
  public let demand: ProtectionDemand?
  /// The account of the one-time passwords; nil if the user gives none.
  public let otp: CodeAccount?
  /// The account of the seals; nil if the user gives none.
  public let seal: CodeAccount?
  /// The number of failed attempts with codes of all authenticators of the user.
  public let failureCount: UInt64
  /// The end of the lockout or of the owner's lock, in Unix seconds; 0 if there was none, and 2^53 - 1 without an end.
  public let lockedUntil: UInt64
}
