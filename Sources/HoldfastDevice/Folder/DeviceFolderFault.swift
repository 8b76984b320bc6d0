import HoldfastStorage

/// Why a device's folder could not be made or opened.
public enum DeviceFolderFault: Error, Equatable {
  /// There is no such folder, or no device in it.
  case missing
  /// There is something else than a folder.
  case notFolder
  /// The group or others may enter it.
  case tooOpen
  /// Another user owns it.
  case wrongOwner
  /// Making: there is a device already.
  case alreadyMade
  /// Its description is missing: a reset was interrupted, or somebody removed it.
  case incomplete
  /// Making it was interrupted before anybody could use it: it is to be made again.
  case halfMade
  /// Another process serves it, or is making it.
  case inUse
  case noPermission
  case diskFull
  /// One of its files is not as it should be.
  case file(DeviceFile, DeviceFileFault)
  /// The counter that anchors the device could not be used.
  case counter(CounterFault)
  /// The path of a TPM is not absolute, or has more than 107 bytes.
  case badTPMPath
  /// The system refused the folder for another reason.
  case folder(FileError)
  /// The random source, the clock or the cryptographic library failed.
  case failed
}

extension DeviceFolderFault {
  /// The folder, or the file `lock` in it, could not be had.
  init(lock error: FileError, in folder: String) {
    self = error.path == folder ? DeviceFolderFault(folder: error) : .folder(error)
  }

  /// What went wrong with the folder itself.
  init(folder error: FileError) {
    self =
      switch error.kind {
      case .notFound: .missing
      case .symbolicLink, .notDirectory, .notRegular, .isDirectory: .notFolder
      case .tooOpen: .tooOpen
      case .wrongOwner: .wrongOwner
      case .locked: .inUse
      case .noPermission: .noPermission
      case .diskFull: .diskFull
      case .readOnly, .exists, .tooLarge, .anotherKind, .other: .folder(error)
      }
  }
}
