import HoldfastCore

/// A shared secret's record in the authenticator, without the secret.
public struct Record: Sendable, Equatable {
  /// The permitted indices of a user's records.
  package static let indices = 1...8

  /// The permitted values of ``clockOffsetSeconds``: 32 bits, ahead or behind.
  static let clockOffsetBounds = -Int64(UInt32.max)...Int64(UInt32.max)

  /// The name of the user, at most 32 UTF-8 bytes.
  public let user: String
  /// The index among the user's records, 1 to 8.
  public let index: Int
  /// The purpose of the record's codes.
  public let purpose: RecordPurpose
  /// The name of the issuer; may be empty.
  public let issuer: String
  /// The device that has the same secret; nil if it is not known.
  public let deviceID: DeviceID?
  /// The method that makes codes from the secret.
  public let method: CodeMethod
  /// The first counter that has not been used.
  public package(set) var nextCounter: UInt64
  /// The first counter that the device is not known to have seen.
  package internal(set) var acknowledgedCounter: UInt64
  /// The difference of the device's clock from this one, in seconds; positive if it is ahead.
  public package(set) var clockOffsetSeconds: Int64
  /// The last time step for which a code was shown.
  package internal(set) var lastTimeStep: UInt64?
  /// The time of the last synchronisation with the device, in Unix seconds of this clock.
  public package(set) var lastSynchronised: UInt64?
  /// The device's look-ahead window, in codes; nil if it is not known.
  package let lookAheadWindow: UInt64?
  /// The largest length of a field in a seal, in UTF-8 bytes; nil for the usual limit of 16 characters.
  public let sealFieldByteLimit: Int?
  /// The inputs that the use of the secret requires, all of them.
  public internal(set) var protection: ProtectionInputs
  /// The number of the group of records that were stored together and therefore share a PIN or key.
  package let protectionGroup: UInt64
  /// Whether the device is known to have the secret.
  public package(set) var isConfirmed: Bool
  /// The progress of a change of the record's protection.
  package internal(set) var change: ChangeProgress
  /// The first counter or time step whose code can only have been shown after the last change; nil without a change.
  package internal(set) var changePosition: UInt64?
  /// The protection that the device's owner demands; nil for none.
  public let demand: ProtectionDemand?

  /// Whether a change of the protection is neither confirmed nor undone.
  public var isChangeOpen: Bool { change == .open }
  /// Whether a change or an import was interrupted, so that the secret is missing: the undo code, or the import, restores
  /// it.
  public var isInterrupted: Bool { change == .erased || change == .importing }
}

/// The progress of a change of a record's protection. The raw value is the one in the file.
package enum ChangeProgress: UInt8, Sendable, Equatable {
  /// There is no change.
  case none = 0
  /// The old secret is stored, and a copy of it under an undo code.
  case prepared = 1
  /// The old secret is erased, and only the copy under the undo code remains: a change was interrupted.
  case erased = 2
  /// The new secret is stored, and a copy of the old one under the undo code.
  case open = 3
  /// The secret is erased because an import was about to replace it: the import was interrupted.
  case importing = 4
}

/// The purpose of a record's codes. The raw value is the one in the file.
public enum RecordPurpose: UInt8, Sendable, Equatable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals over a command and its parameters.
  case seal = 2
  /// Codes with which the device proves itself to the user. Such a record is never protected: a code from the device
  /// would let anyone test a PIN.
  case host = 3
}

/// A record with the secret values that are stored next to it in the file.
package struct StoredRecord {
  package var record: Record
  /// The blinded secret; nil while it is erased and not yet replaced.
  package var secret: BlindedSecret?
  /// The secret from before a change, encrypted under the undo code.
  package var undo: [UInt8]?
  /// The last challenge to the device, 16 hexadecimal digits; nil after it was used.
  package var clientChallenge: String?

  /// Returns the secret of a record that may be used.
  ///
  /// - Throws: `notConfirmed`, `interrupted`.
  package func usableSecret() throws(AuthenticatorFault) -> BlindedSecret {
    guard record.isConfirmed else { throw .notConfirmed }
    guard let secret else { throw .interrupted }
    return secret
  }
}

extension Credential {
  /// Whether the secret is entirely printable ASCII. A random secret of 8 or more bytes almost never is.
  ///
  /// A PIN does not protect such a secret, because a wrong PIN yields bytes that are not printable. Callers warn about
  /// it.
  package var isText: Bool {
    secret.withBytes { bytes in
      guard bytes.count >= 8 else { return false }
      var strange: Int32 = 0
      for index in bytes.indices {
        let byte = Int32(bytes[index])
        strange |= (byte - 0x20) | (0x7e - byte)
      }
      return revealed(UInt8(truncatingIfNeeded: strange >> 31)) == 0
    }
  }
}
