import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// A folder that holds one device: keys, ledger, policy and the simulated lock. It has mode 0700, its files 0600.
package struct DeviceFolder: Sendable {
  package let path: String
  /// What the world may know of the device.
  package let descriptor: DeviceDescriptor
  /// The counter that anchors the device's ledger; nil where nothing does.
  package let counter: CounterPlace?
  let operations: CounterOperations

  init(path: String, descriptor: DeviceDescriptor, counter: CounterPlace?, operations: CounterOperations) {
    (self.path, self.descriptor, self.counter, self.operations) = (path, descriptor, counter, operations)
  }

  /// Opens a folder and checks its description and key.
  ///
  /// Throws `missing`, `notFolder`, `tooOpen`, `wrongOwner`, `halfMade`, `incomplete`, `folder` for one of another
  /// kind, or `file` with what is wrong with which.
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

  /// Refuses a folder of another kind, and one whose making did not end.
  static func requireWholeDevice(_ path: String) throws(DeviceFolderFault) {
    do throws(FileError) { try FolderKind.device.require(ofFolder: path) } catch {
      throw DeviceFolderFault(lock: error, in: path)
    }
    if try isHalfMade(path) { throw .halfMade }
  }

  /// Opens the ledger, which must be the newest one where a counter anchors it. Throws `file` for it, `counter`.
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

  /// The policy file, which need not be a good one.
  package var policy: PolicyFile {
    PolicyFile(path: DeviceFile.policy.path(in: path))
  }

  /// Puts `policy` in the place of the one that is there, all at once. Throws `file` for it.
  package func write(_ policy: DevicePolicy) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json(), at: DeviceFile.policy.path(in: path), overwrite: true)
    } catch { throw .file(.policy, DeviceFileFault(error)) }
  }

  /// Where the simulated lock stands. Throws `file` for it.
  package func openLock() throws(DeviceFolderFault) -> SimulatedLock {
    do throws(DeviceFileFault) {
      return try SimulatedLock(lockStateFile)
    } catch { throw .file(.actuator, error) }
  }

  var lockStateFile: LockStateFile {
    LockStateFile(path: DeviceFile.actuator.path(in: path), deviceID: descriptor.deviceID)
  }

  /// Reads the private key, and makes what follows from it.
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

  /// The folder must be this user's alone, and not a symbolic link.
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
  /// Whether anything has its name.
  func isPresent(in folder: String) throws(DeviceFolderFault) -> Bool {
    var status = stat()
    if unsafe lstat(path(in: folder), &status) == 0 { return true }
    guard errno == ENOENT else { throw .noPermission }
    return false
  }
}

/// A file of a device's folder.
package enum DeviceFile: String, Sendable, CaseIterable {
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
  package func path(in folder: String) -> String {
    folder + "/" + rawValue
  }
}

/// What is wrong with a file of the folder.
package enum DeviceFileFault: Error, Equatable {
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

/// Why a device's folder could not be made or opened.
package enum DeviceFolderFault: Error, Equatable {
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
