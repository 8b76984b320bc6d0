import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

extension DeviceFolder {
  /// Makes a device: a new key and id, a policy and a lock that is locked. The clock floor starts at the real clock.
  ///
  /// The description is written last: a folder in which that did not happen is ``DeviceFolderFault/incomplete``.
  /// Throws `alreadyMade`, `incomplete` or `inUse` for a folder that is not free, `notFolder`, `tooOpen`, `wrongOwner`,
  /// `missing` without a folder above it, `noPermission`, `diskFull`, `file`, and `failed` without a real clock.
  public static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy = .forSimulatedLock, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    do throws(FileError) { try Files.createPrivateDirectory(at: path) } catch {
      throw DeviceFolderFault(lock: error, in: path)
    }
    let serving = try takeLock(of: path)
    _ = serving
    guard try !DeviceFile.description.isPresent(in: path) else { throw .alreadyMade }
    for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
    let key = try newKey(&random)
    let folder = try newDevice(at: path, key, &random)
    try folder.put(policy.json().span, in: .policy)
    do throws(DatabaseError) {
      try Ledger.create(
        path: DeviceFile.ledger.path(in: path), deviceID: folder.descriptor.deviceID, realClock: now)
    } catch { throw .file(.ledger, DeviceFileFault(error)) }
    try folder.complete(with: key)
    return folder
  }

  /// Makes another device of it, with a new key and id, so that no token counts any more: trusted issuers, floors, uses
  /// and nonces go, and the lock is locked. Policy, the count of starts and the audit log stay.
  ///
  /// Also for a folder whose making or reset was interrupted, as long as its ledger is whole. Throws `inUse` while it is
  /// served, and as ``create(at:policy:random:clock:)`` does.
  public static func reset<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    try checkFolder(path)
    guard try DeviceFile.ledger.isPresent(in: path) else {
      for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .file(.ledger, .missing) }
      throw .missing
    }
    let serving = try takeLock(of: path)
    _ = serving
    let ledger: Ledger
    do throws(DatabaseError) {
      ledger = try Ledger(path: DeviceFile.ledger.path(in: path), limits: LedgerLimits())
    } catch { throw .file(.ledger, DeviceFileFault(error)) }
    let key = try newKey(&random)
    let folder = try newDevice(at: path, key, &random)
    // From here on the old device is no more, and the new one is not yet.
    try folder.removeDescription()
    do throws(DatabaseError) {
      try ledger.reset(to: folder.descriptor.deviceID, realClock: now)
      try ledger.checkpoint()
    } catch { throw .file(.ledger, DeviceFileFault(error)) }
    try folder.complete(with: key)
    return folder
  }

  private static func takeLock(of path: String) throws(DeviceFolderFault) -> DirectoryLock {
    do throws(FileError) { return try DirectoryLock(directory: path) } catch {
      throw DeviceFolderFault(lock: error, in: path)
    }
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

  private static func newDevice<Random: RandomSource & ~Copyable>(
    at path: String, _ key: borrowing P256PrivateKey, _ random: inout Random
  ) throws(DeviceFolderFault) -> DeviceFolder {
    let deviceID: DeviceID
    do throws(RandomFailure) { deviceID = try random.fixedBytes() } catch { throw .failed }
    do throws(CryptographyFailure) {
      return DeviceFolder(
        path: path, descriptor: try DeviceDescriptor(deviceID: deviceID, publicPoint: key.publicPoint))
    } catch { throw .failed }
  }

  /// Writes what belongs to the device's id and key, the description last.
  private func complete(with key: borrowing P256PrivateKey) throws(DeviceFolderFault) {
    var keyText = ByteBuffer<512>()
    do throws(KeyFault) { try DeviceKeyFile.encode(key, into: &keyText) } catch { throw .failed }
    try put(keyText.bytes, in: .key)
    do throws(DeviceFileFault) { try lockStateFile.write(.locked) } catch { throw .file(.actuator, error) }
    try put(description().span, in: .description)
  }

  private func put(_ bytes: Span<UInt8>, in file: DeviceFile) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: file.path(in: path), overwrite: true)
    } catch { throw .file(file, DeviceFileFault(error)) }
  }

  private func removeDescription() throws(DeviceFolderFault) {
    do throws(FileError) { try Files.removeFile(at: DeviceFile.description.path(in: path)) } catch {
      guard error.kind == .notFound else { throw .file(.description, DeviceFileFault(error)) }
    }
  }

  private func description() -> [UInt8] {
    JSONValue.object([("version", .integer(Self.version))] + (descriptor.json.members ?? [])).pretty()
  }
}
