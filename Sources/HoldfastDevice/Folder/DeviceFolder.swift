import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// A folder that holds one device: key, ledger, policy and the simulated lock. It has mode 0700, its files 0600.
package struct DeviceFolder: Sendable {
  /// The path of the folder.
  package let path: String
  /// The public facts about the device: its id and public key.
  package let descriptor: DeviceDescriptor
  /// The place of the counter that anchors the device's ledger; nil if the ledger is not anchored.
  package let counter: CounterPlace?
  let operations: CounterOperations

  init(path: String, descriptor: DeviceDescriptor, counter: CounterPlace?, operations: CounterOperations) {
    (self.path, self.descriptor, self.counter, self.operations) = (path, descriptor, counter, operations)
  }

  /// Opens a folder and checks its description and key.
  ///
  /// - Throws: `missing`, `notFolder`, `tooOpen`, `wrongOwner`, `halfMade`, `incomplete`, `folder` for a folder of another
  ///   kind, or `file` with the file and its fault.
  package static func open(at path: String) throws(DeviceFolderFault) -> DeviceFolder {
    try open(at: path, operations: .tpm)
  }

  static func open(at path: String, operations: CounterOperations) throws(DeviceFolderFault) -> DeviceFolder {
    try checkFolder(path)
    try requireWholeDevice(path)
    guard try DeviceFile.description.isPresent(in: path) else {
      for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
      throw .missing
    }
    let (descriptor, counter) = try readDescription(path)
    let folder = DeviceFolder(path: path, descriptor: descriptor, counter: counter, operations: operations)
    let secrets = try folder.secrets()
    guard secrets.publicPoint == folder.descriptor.publicKey.point else { throw .file(.key, .otherDevice) }
    return folder
  }

  /// Checks that the folder holds a device, and that its making was completed.
  ///
  /// - Throws: `folder` for a folder of another kind, `halfMade`.
  static func requireWholeDevice(_ path: String) throws(DeviceFolderFault) {
    do throws(FileError) { try FolderKind.device.require(ofFolder: path) } catch {
      throw DeviceFolderFault(lock: error, in: path)
    }
    if try isHalfMade(path) { throw .halfMade }
  }

  /// Opens the ledger. If a counter anchors it, it must be the newest one.
  ///
  /// - Throws: `file` for a fault of the ledger or the description, `counter` for one of the counter.
  package func openLedger(limits: LedgerLimits = LedgerLimits()) throws(DeviceFolderFault) -> Ledger {
    let ledger: Ledger
    let anchor = try openAnchor()
    do throws(LedgerError) {
      ledger = try Ledger(path: DeviceFile.ledger.path(in: path), limits: limits, anchor: anchor)
    } catch { throw DeviceFolderFault(error) }
    guard ledger.deviceID == descriptor.deviceID else { throw .file(.ledger, .otherDevice) }
    guard (ledger.tpm == nil) == (counter == nil) else { throw .file(.description, .otherDevice) }
    return ledger
  }

  private func openAnchor() throws(DeviceFolderFault) -> LedgerAnchor? {
    guard let counter else { return nil }
    let secrets = try secrets()
    let rollbackCounter = try secrets.counter(at: counter, operations)
    do throws(FileError) {
      return LedgerAnchor(of: descriptor.deviceID, rollbackCounter, turns: try FolderTurns(directory: path))
    } catch { throw DeviceFolderFault(folder: error) }
  }

  /// The policy file, which may be invalid.
  package var policy: PolicyFile {
    PolicyFile(path: DeviceFile.policy.path(in: path))
  }

  /// Replaces the policy file atomically.
  ///
  /// - Throws: `file` if it cannot be written.
  package func write(_ policy: DevicePolicy) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json(), at: DeviceFile.policy.path(in: path), overwrite: true)
    } catch { throw .file(.policy, DeviceFileFault(error)) }
  }

  /// Opens the simulated lock at its recorded state.
  ///
  /// - Throws: `file` if the state cannot be read.
  package func openLock() throws(DeviceFolderFault) -> SimulatedLock {
    do throws(DeviceFileFault) {
      return try SimulatedLock(lockStateFile)
    } catch { throw .file(.actuator, error) }
  }

  var lockStateFile: LockStateFile {
    LockStateFile(path: DeviceFile.actuator.path(in: path), deviceID: descriptor.deviceID)
  }

  /// Reads the private key and derives the secrets that follow from it.
  ///
  /// - Throws: `file` if the key cannot be read or is not a private key.
  func secrets() throws(DeviceFolderFault) -> DeviceSecrets {
    let scalar: Secret<32>?
    do throws(FileError) {
      scalar = try Files.readSecretFile(
        at: DeviceFile.key.path(in: path), limit: DeviceKeyFile.maximumByteCount,
        requirements: [.secret, .noSymbolicLink]
      ) { text in
        do throws(KeyFault) { return try DeviceKeyFile.decode(text) } catch { return nil }
      }
    } catch { throw .file(.key, DeviceFileFault(error)) }
    guard let scalar else { throw .file(.key, .corrupt) }
    do throws(CryptographyFailure) { return try DeviceSecrets(scalar: scalar) } catch { throw .file(.key, .corrupt) }
  }
}

extension DeviceFolder {
  static let version: UInt64 = 2

  static func readDescription(
    _ path: String
  ) throws(DeviceFolderFault) -> (descriptor: DeviceDescriptor, counter: CounterPlace?) {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: DeviceFile.description.path(in: path), limit: PublicKeyJWK.maximumByteCount,
        requirements: [.secret, .noSymbolicLink])
    } catch { throw .file(.description, DeviceFileFault(error)) }
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: PublicKeyJWK.maximumByteCount)
    } catch { throw .file(.description, .corrupt) }
    guard let version = value["version"]?.number else { throw .file(.description, .corrupt) }
    guard version <= Self.version else { throw .file(.description, .newerVersion) }
    guard version == Self.version else { throw .file(.description, .olderVersion) }
    let descriptor: DeviceDescriptor
    do throws(KeyFault) { descriptor = try DeviceDescriptor(value) } catch { throw .file(.description, .corrupt) }
    guard let member = value["counter"] else { return (descriptor, nil) }
    guard let counter = CounterPlace(member, deviceID: descriptor.deviceID) else {
      throw .file(.description, .corrupt)
    }
    return (descriptor, counter)
  }

  /// Checks that the folder belongs to this user, gives others no access, and is not a symbolic link.
  ///
  /// - Throws: `missing`, `noPermission`, `notFolder`, `wrongOwner`, `tooOpen`.
  static func checkFolder(_ path: String) throws(DeviceFolderFault) {
    guard !path.utf8.contains(0) else { throw .missing }
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      throw errno == EACCES ? .noPermission : errno == ENOTDIR ? .notFolder : .missing
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .notFolder }
    guard status.st_uid == geteuid() else { throw .wrongOwner }
    guard status.st_mode & 0o077 == 0 else { throw .tooOpen }
  }
}

extension DeviceFile {
  /// Returns whether anything with the file's name exists in the folder.
  func isPresent(in folder: String) throws(DeviceFolderFault) -> Bool {
    var status = stat()
    if unsafe lstat(path(in: folder), &status) == 0 { return true }
    guard errno == ENOENT else { throw .noPermission }
    return false
  }
}

/// A file of a device's folder.
package enum DeviceFile: String, Sendable, CaseIterable {
  /// The device's id and public key, and the version of the folder. It is written last, so a folder without it is incomplete.
  case description = "device.json"
  /// The device's private key, as a JWK.
  case key = "device.key"
  /// The policy of the device's owner.
  case policy = "policy.json"
  /// The ledger, an SQLite database: the facts that the device must never lose.
  case ledger = "ledger.sqlite"
  /// The state of the simulated lock.
  case actuator = "actuator.state"

  /// Returns the file's path in the folder at `folder`.
  package func path(in folder: String) -> String {
    folder + "/" + rawValue
  }
}

/// The fault of a file of the folder.
package enum DeviceFileFault: Error, Equatable {
  /// The file does not exist.
  case missing
  /// The group or others may read or write the file.
  case tooOpen
  /// Another user owns the file.
  case wrongOwner
  /// The file is a symbolic link, a folder, or anything else that is not a regular file.
  case notRegular
  /// The file does not have the contents that Holdfast writes.
  case corrupt
  /// The file belongs to another device.
  case otherDevice
  /// A later version of the program wrote the file.
  case newerVersion
  /// A version wrote the file whose format this version no longer reads.
  case olderVersion
  /// This user has no permission for the file.
  case noPermission
  /// The disk is full.
  case diskFull
  /// The file or its file system is read-only.
  case readOnly
  /// The file is an older copy, according to the counter that anchors it.
  case rolledBack
  /// Another process held the file for too long.
  case busy
  /// The system failed for another reason.
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

/// The reason that a device's folder could not be made or opened.
package enum DeviceFolderFault: Error, Equatable {
  /// There is no such folder, or no device in it.
  case missing
  /// The path names something other than a folder.
  case notFolder
  /// The group or others may access the folder.
  case tooOpen
  /// Another user owns the folder.
  case wrongOwner
  /// The folder to be made holds a device already.
  case alreadyMade
  /// The folder's description is missing: a reset was interrupted, or the file was removed.
  case incomplete
  /// The making of the folder was interrupted. It must be made again.
  case halfMade
  /// Another process serves or makes the folder.
  case inUse
  /// This user has no permission for the folder.
  case noPermission
  /// The disk is full.
  case diskFull
  /// A file of the folder has a fault.
  case file(DeviceFile, DeviceFileFault)
  /// The counter that anchors the device could not be used.
  case counter(CounterFault)
  /// The path of the TPM is not absolute, or has more than 107 bytes.
  case badTPMPath
  /// The system refused the folder for another reason, or the folder is of another kind.
  case folder(FileError)
  /// The random source, the clock or the cryptographic library failed.
  case failed
}

extension DeviceFolderFault {
  /// Makes the fault from an error of taking the lock file of `folder`, or of the folder itself.
  init(lock error: FileError, in folder: String) {
    self = error.path == folder ? DeviceFolderFault(folder: error) : .folder(error)
  }

  /// Makes the fault from an error of the folder itself.
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
