import HoldfastKeys
import HoldfastStorage

/// A file of a device's folder.
public enum DeviceFile: String, Sendable, CaseIterable {
  /// The device's id and public key, and the version of the folder; written last, so that a folder without it is half-made.
  case description = "device.json"
  /// The private key, a JWK.
  case key = "device.key"
  /// What the owner allows.
  case policy = "policy.json"
  /// What must never be forgotten.
  case ledger = "ledger.sqlite"
  /// Where the simulated lock stands.
  case actuator = "actuator.state"

  /// Where it is, in the folder at `folder`.
  public func path(in folder: String) -> String {
    folder + "/" + rawValue
  }
}

/// What is wrong with a file of the folder.
public enum DeviceFileFault: Error, Equatable {
  case missing
  /// The group or others may read or write it.
  case tooOpen
  /// Another user owns it.
  case wrongOwner
  /// A symbolic link, a folder, or anything else that is no regular file.
  case notRegular
  /// It does not hold what was written there.
  case corrupt
  /// It is another device's.
  case otherDevice
  /// A later version of the program wrote it.
  case newerVersion
  /// A version wrote it that this one no longer reads.
  case olderVersion
  case noPermission
  case diskFull
  /// It or its file system is read-only.
  case readOnly
  /// It is an older copy, as the counter that anchors it tells.
  case rolledBack
  /// Another process held it for too long.
  case busy
  /// The system failed otherwise.
  case failed
}

extension DeviceFileFault {
  init(_ error: FileError) {
    self =
      switch error.kind {
      case .notFound: .missing
      case .tooOpen: .tooOpen
      case .wrongOwner: .wrongOwner
      case .symbolicLink, .notRegular, .isDirectory, .notDirectory: .notRegular
      case .tooLarge: .corrupt
      case .noPermission: .noPermission
      case .readOnly: .readOnly
      case .diskFull: .diskFull
      case .exists, .locked, .anotherKind, .other: .failed
      }
  }

  init(_ error: DatabaseError) {
    self =
      switch error {
      case .corrupt, .foreign, .wrongType, .constraint: .corrupt
      case .newerVersion: .newerVersion
      case .cannotOpen: .missing
      case .permission: .tooOpen
      case .readOnly: .readOnly
      case .full: .diskFull
      case .busy: .busy
      case .outOfRange, .misuse, .other: .failed
      }
  }

  init(_ fault: KeyFault) {
    self = .corrupt
  }
}
