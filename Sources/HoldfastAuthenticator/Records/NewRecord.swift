import HoldfastCore

/// A record that is to be stored.
public struct NewRecord: Sendable {
  /// 1 to 8, the user's own.
  public let index: Int
  public let purpose: RecordPurpose
  /// Its user names the record's user; its next counter counts as one that the device knows.
  public let credential: Credential
  /// The device that has the same secret; nil for an account from elsewhere.
  public let deviceID: DeviceID?
  /// How many codes ahead the device looks; nil where that is not known, so that nothing is refused.
  public let lookAheadWindow: UInt64?
  /// The most UTF-8 bytes above 16 that a field of a seal may have, or nil for 16 characters.
  public let sealFieldByteLimit: Int?

  public init(
    index: Int, purpose: RecordPurpose, credential: Credential, deviceID: DeviceID? = nil,
    lookAheadWindow: UInt64? = nil, sealFieldByteLimit: Int? = nil
  ) {
    (self.index, self.purpose, self.credential) = (index, purpose, credential)
    (self.deviceID, self.lookAheadWindow) = (deviceID, lookAheadWindow)
    self.sealFieldByteLimit = sealFieldByteLimit
  }
}
