import HoldfastCore

/// What the authenticator knows of one shared secret: all but the secret.
package struct Record: Sendable, Equatable {
  /// The indices that a user's records may have.
  package static let indices = 1...8

  /// What ``clockOffsetSeconds`` may be: as much as 32 bits hold, ahead or behind.
  static let clockOffsetBounds = -Int64(UInt32.max)...Int64(UInt32.max)

  /// Whose it is, at most 32 UTF-8 bytes.
  package let user: String
  package let index: Int
  package let purpose: RecordPurpose
  /// Who issued it; may be empty.
  package let issuer: String
  package let deviceID: DeviceID?
  package let method: CodeMethod
  /// The first counter that was not used yet.
  package internal(set) var nextCounter: UInt64
  /// The first counter that the device has not seen, as far as is known.
  package internal(set) var acknowledgedCounter: UInt64
  /// How many seconds the device's clock is ahead of this one.
  package internal(set) var clockOffsetSeconds: Int64
  /// The last time step that a code was shown for.
  package internal(set) var lastTimeStep: UInt64?
  /// When it was synchronised with the device, in Unix seconds of this clock.
  package internal(set) var lastSynchronised: UInt64?
  package let lookAheadWindow: UInt64?
  /// The most UTF-8 bytes of a seal's field; nil for 16 characters.
  package let sealFieldByteLimit: Int?
  package internal(set) var protection: ProtectionKind
  /// Records that were stored together share a PIN, and with it this number.
  package let protectionGroup: UInt64
  /// Whether the device is known to have the secret.
  package internal(set) var isConfirmed: Bool
  /// How far a change of its protection is.
  package internal(set) var change: ChangeProgress
  /// The first counter or time step whose code can only have been shown since the last change; nil without one.
  package internal(set) var changePosition: UInt64?
}

/// How far a change of a record's protection is. The raw value is what is written.
package enum ChangeProgress: UInt8, Sendable, Equatable {
  /// There is none.
  case none = 0
  /// The old secret is there, and a copy under an undo code.
  case prepared = 1
  /// The old secret is erased; there is only the copy under the undo code. A change was interrupted.
  case erased = 2
  /// The new secret is there, and the copy of the old one under the undo code.
  case open = 3
  /// The secret is erased because an import was to replace it. The import was interrupted.
  case importing = 4
}

/// What a record's codes are for. The raw value is what is written.
package enum RecordPurpose: UInt8, Sendable, Equatable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals over a command and its parameters.
  case seal = 2
  /// Codes by which the device proves itself to the user; never protected, because a device's code tests a PIN.
  case host = 3
}

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

extension Credential {
  /// Whether the secret is printable ASCII from its first byte to its last, as none of 8 random bytes or more hardly ever is.
  ///
  /// Blinded by a PIN, such a secret gives itself away: a wrong PIN makes other bytes of it. It is a thing to warn of.
  package var isText: Bool {
    secret.withBytes { bytes in
      guard bytes.count >= 8 else { return false }
      var strange: Int32 = 0
      for index in bytes.indices {
        let byte = Int32(bytes[index])
        strange |= (byte - 0x20) | (0x7e - byte)
      }
      return opaque(UInt8(truncatingIfNeeded: strange >> 31)) == 0
    }
  }
}
