import Glibc
import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

/// A folder that holds one device: keys, ledger, policy and the simulated lock. It has mode 0700, its files 0600.
public struct DeviceFolder: Sendable {
  public let path: String
  /// What the world may know of the device.
  public let descriptor: DeviceDescriptor

  init(path: String, descriptor: DeviceDescriptor) {
    (self.path, self.descriptor) = (path, descriptor)
  }

  /// Opens a folder and checks its description, key and seed.
  ///
  /// Throws `missing`, `notFolder`, `tooOpen`, `wrongOwner`, `incomplete`, or `file` with what is wrong with which.
  public static func open(at path: String) throws(DeviceFolderFault) -> DeviceFolder {
    try checkFolder(path)
    guard try DeviceFile.description.isPresent(in: path) else {
      for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
      throw .missing
    }
    let folder = DeviceFolder(path: path, descriptor: try readDescription(path))
    let secrets = try folder.secrets()
    guard secrets.publicPoint == folder.descriptor.publicKey.point else { throw .file(.key, .corrupt) }
    return folder
  }

  /// Opens the ledger. Throws `file` for it.
  public func openLedger(limits: LedgerLimits = LedgerLimits()) throws(DeviceFolderFault) -> Ledger {
    do throws(DatabaseError) {
      return try Ledger(path: DeviceFile.ledger.path(in: path), limits: limits)
    } catch { throw .file(.ledger, DeviceFileFault(error)) }
  }

  /// The policy file, which need not be a good one.
  public var policy: PolicyFile {
    PolicyFile(path: DeviceFile.policy.path(in: path))
  }

  /// Puts `policy` in the place of the one that is there, all at once. Throws `file` for it.
  public func write(_ policy: DevicePolicy) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json(), at: DeviceFile.policy.path(in: path), overwrite: true)
    } catch { throw .file(.policy, DeviceFileFault(error)) }
  }

  /// Where the simulated lock stands. Throws `file` for it.
  public func openLock() throws(DeviceFolderFault) -> SimulatedLock {
    do throws(DeviceFileFault) {
      return try SimulatedLock(LockStateFile(path: DeviceFile.actuator.path(in: path)))
    } catch { throw .file(.actuator, error) }
  }

  /// Reads the private key and the seed.
  func secrets() throws(DeviceFolderFault) -> DeviceSecrets {
    let scalar = try readSecret(.key, limit: DeviceKeyFile.maximumByteCount) { text in
      do throws(KeyFault) { return try DeviceKeyFile.decode(text) } catch { return nil }
    }
    let seed = try readSecret(.challengeSeed, limit: 32) { Secret<32>(copying: $0) }
    do throws(CryptographyFailure) {
      return try DeviceSecrets(scalar: scalar, challengeSeed: seed)
    } catch { throw .file(.key, .corrupt) }
  }

  private func readSecret(
    _ file: DeviceFile, limit: Int, _ decode: (Span<UInt8>) -> Secret<32>?
  ) throws(DeviceFolderFault) -> Secret<32> {
    let secret: Secret<32>?
    do throws(FileError) {
      secret = try Files.readSecretFile(
        at: file.path(in: path), limit: limit, requirements: [.secret, .noSymbolicLink], decode)
    } catch { throw .file(file, DeviceFileFault(error)) }
    guard let secret else { throw .file(file, .corrupt) }
    return secret
  }
}

extension DeviceFolder {
  static let version: UInt64 = 1

  private static func readDescription(_ path: String) throws(DeviceFolderFault) -> DeviceDescriptor {
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
    do throws(KeyFault) {
      return try DeviceDescriptor(value)
    } catch { throw .file(.description, .corrupt) }
  }

  /// The folder must be this user's alone, and not a symbolic link.
  private static func checkFolder(_ path: String) throws(DeviceFolderFault) {
    var status = stat()
    guard !path.utf8.contains(0), unsafe lstat(path, &status) == 0 else {
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
