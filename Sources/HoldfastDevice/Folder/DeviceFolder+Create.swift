import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

extension DeviceFolder {
  /// Makes a device: a new key, id and seed, a policy and a lock that is locked. The clock floor starts at the real clock.
  ///
  /// The description is written last: a folder in which that did not happen is ``DeviceFolderFault/incomplete``.
  /// Throws `alreadyMade`, `incomplete` or `inUse` for a folder that is not free, `notFolder`, `tooOpen`, `wrongOwner`,
  /// `missing` without a folder above it, `noPermission`, `diskFull`, `file`, and `failed` without a real clock.
  public static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy = .forSimulatedLock, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    let serving: DirectoryLock
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path)
      serving = try DirectoryLock(directory: path)
    } catch { throw DeviceFolderFault(lock: error, in: path) }
    _ = serving
    guard try !DeviceFile.description.isPresent(in: path) else { throw .alreadyMade }
    for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
    let folder = try makeSecrets(at: path, random: &random)
    try folder.put(policy.json().span, in: .policy)
    do throws(DeviceFileFault) {
      try LockStateFile(path: DeviceFile.actuator.path(in: path)).write(.locked)
    } catch { throw .file(.actuator, error) }
    do throws(DatabaseError) {
      try Ledger.create(path: DeviceFile.ledger.path(in: path), realClock: now)
    } catch { throw .file(.ledger, DeviceFileFault(error)) }
    try folder.put(folder.description().span, in: .description)
    return folder
  }

  private static func makeSecrets<Random: RandomSource & ~Copyable>(
    at path: String, random: inout Random
  ) throws(DeviceFolderFault) -> DeviceFolder {
    let seed: Secret<32>
    let deviceID: DeviceID
    do throws(RandomFailure) { seed = try random.secret() } catch { throw .failed }
    do throws(RandomFailure) { deviceID = try random.fixedBytes() } catch { throw .failed }
    let key = try newKey(&random)
    let folder: DeviceFolder
    do throws(CryptographyFailure) {
      folder = DeviceFolder(
        path: path, descriptor: try DeviceDescriptor(deviceID: deviceID, publicPoint: key.publicPoint))
    } catch { throw .failed }
    var keyText = ByteBuffer<512>()
    do throws(KeyFault) { try DeviceKeyFile.encode(key, into: &keyText) } catch { throw .failed }
    try seed.withBytes { (bytes: Span<UInt8>) throws(DeviceFolderFault) in
      try folder.put(bytes, in: .challengeSeed)
    }
    try folder.put(keyText.bytes, in: .key)
    return folder
  }

  /// Source: FIPS 186-5 §A.2.2, testing candidates: hardly ever is the first one not a scalar.
  private static func newKey<Random: RandomSource & ~Copyable>(
    _ random: inout Random
  ) throws(DeviceFolderFault) -> P256PrivateKey {
    for _ in 0..<8 {
      let scalar: Secret<32>
      do throws(RandomFailure) { scalar = try random.secret() } catch { throw .failed }
      do throws(CryptographyFailure) { return try P256PrivateKey(scalar: scalar) } catch { continue }
    }
    throw .failed
  }

  private func put(_ bytes: Span<UInt8>, in file: DeviceFile) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: file.path(in: path), overwrite: false)
    } catch { throw .file(file, DeviceFileFault(error)) }
  }

  private func description() -> [UInt8] {
    JSONValue.object([("version", .integer(Self.version))] + (descriptor.json.members ?? [])).pretty()
  }
}
