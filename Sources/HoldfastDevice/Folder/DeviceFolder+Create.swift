import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

extension DeviceFolder {
  /// Creates a device with a new key and id. Its lock is locked, and it trusts no issuer yet.
  ///
  /// - Parameters:
  ///   - path: the folder, which does not exist or is empty.
  ///   - policy: the commands that may be carried out, and how.
  /// - Throws: a ``DeviceFolderFault``: `alreadyMade` or `incomplete` for a folder that is not free; `folder` for one of another
  ///   kind, one that cannot be made, and while another call makes it (`locked`); `file` for a file that cannot be written, also
  ///   on a full or read-only disk; `failed` without a clock. An error leaves no device, or a whole one (`alreadyMade`) if only
  ///   the last step did not reach the disk.
  public static func create(at path: String, policy: DevicePolicy) throws(DeviceFolderFault) -> DeviceFolder {
    var random = SystemRandom()
    return try create(at: path, policy: policy, random: &random, clock: SystemClock())
  }

  /// Creates a device whose key is not in the folder, such as one in hardware: ``OpenDevice`` is given it.
  ///
  /// - Parameters:
  ///   - path: the folder, which does not exist or is empty.
  ///   - publicPoint: the public half of the key, an uncompressed point of 65 bytes.
  ///   - policy: the commands that may be carried out, and how.
  /// - Throws: a ``DeviceFolderFault``.
  public static func create(
    at path: String, publicPoint: P256Point, policy: DevicePolicy
  ) throws(DeviceFolderFault) -> DeviceFolder {
    var random = SystemRandom()
    return try create(at: path, publicPoint: publicPoint, policy: policy, random: &random, clock: SystemClock())
  }

  /// Creates a device: a new key and id, a policy, and a lock that is locked. The clock floor starts at the real clock.
  ///
  /// If `tpm` is the path of a TPM, a counter in it anchors the device, and older copies of its ledger are then refused. If
  /// `keyTPM` is one, the private key is made in that TPM and never leaves it. With `policyKey`, only policies that this key
  /// signed count, and the device denies everything until one is installed.
  ///
  /// A folder is created completely, or does not count. While it is being made, it carries a mark. A folder that was
  /// interrupted keeps the mark: every other command refuses it as ``DeviceFolderFault/halfMade``, and the next call clears
  /// it and starts again. (A process that is killed may leave its counter and its key in the TPM.)
  ///
  /// - Throws: `alreadyMade`, `incomplete`, `folder` for a folder that is not free or cannot be made, `file`, `badTPMPath`,
  ///   `counter`, `key`, and `failed`, also without a real clock.
  package static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy = .forSimulatedLock, tpm: String? = nil, keyTPM: String? = nil,
    policyKey: P256Point? = nil, groups: [BoundedText<32>] = [], random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    try create(
      at: path, policy: policy, tpm: tpm, keyTPM: keyTPM, policyKey: policyKey, groups: groups, operations: .tpm,
      random: &random, clock: clock)
  }

  package static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy, tpm: String?, keyTPM: String? = nil, policyKey: P256Point? = nil,
    groups: [BoundedText<32>] = [], operations: CounterOperations, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    return try makeFolder(at: path) { () throws(DeviceFolderFault) in
      var (folder, secrets, epoch) = try newDevice(at: path, keyTPM: keyTPM, tpm: tpm, operations, &random)
      folder.groups = groups
      do throws(DeviceFolderFault) {
        try folder.fill(policy, realClock: now, epoch: epoch, tpm: tpm, policyKey: policyKey) {
          () throws(DeviceFolderFault) in
          try folder.complete(with: secrets)
        }
      } catch {
        do throws(CounterFault) { try secrets.removeFromTPM() } catch {}
        throw error
      }
      return folder
    }
  }

  /// Creates a device whose key is not in the folder, without a counter.
  package static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, publicPoint: P256Point, policy: DevicePolicy, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    return try makeFolder(at: path) { () throws(DeviceFolderFault) in
      let descriptor = try newDescriptor(publicPoint, &random)
      let folder = DeviceFolder(
        path: path, descriptor: descriptor, hasKey: false, counter: nil, operations: .tpm)
      try folder.fill(policy, realClock: now, epoch: nil, tpm: nil) { () throws(DeviceFolderFault) in
        try folder.complete()
      }
      return folder
    }
  }

  /// Makes the folder, and has `fill` make the device in it. A folder in which that failed is empty again.
  private static func makeFolder(
    at path: String, fill: () throws(DeviceFolderFault) -> DeviceFolder
  ) throws(DeviceFolderFault) -> DeviceFolder {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path, isBackedUp: false)
      try FolderKind.device.require(ofFolder: path)
    } catch { throw .folder(error) }
    let serving = try takeLock(of: path)
    _ = serving
    if try isHalfMade(path) { try clear(path) }
    guard try !DeviceFile.description.isPresent(in: path) else { throw .alreadyMade }
    for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
    do throws(FileError) { try IncompleteFolder.mark(path, as: .device) } catch {
      throw .folder(error)
    }
    do throws(DeviceFolderFault) { return try fill() } catch {
      // If this fails as well, the mark stays, and the next call clears the folder.
      do throws(DeviceFolderFault) { try clear(path) } catch {}
      throw error
    }
  }

  /// Writes every file into a marked folder, then removes the mark. On failure it removes the counter that was made for it.
  ///
  /// - Parameter complete: writes the files that depend on the device's id and key.
  private func fill(
    _ policy: DevicePolicy, realClock: UInt64, epoch: UInt64?, tpm: String?, policyKey: P256Point? = nil,
    complete: () throws(DeviceFolderFault) -> Void
  ) throws(DeviceFolderFault) {
    do throws(DeviceFolderFault) {
      try put(policy.json().span, in: .policy)
      do throws(DatabaseError) {
        try Ledger.create(
          path: DeviceFile.ledger.path(in: path), deviceID: descriptor.deviceID, realClock: realClock, epoch: epoch,
          tpm: tpm, policyKey: policyKey)
      } catch { throw DeviceFolderFault.file(.ledger, .database(error)) }
      try complete()
      do throws(FileError) { try IncompleteFolder.unmark(path) } catch {
        throw .folder(error)
      }
    } catch {
      if let counter { do throws(CounterFault) { try operations.undefine(counter) } catch {} }
      throw error
    }
  }

  /// Returns whether the making of the folder began and did not end.
  static func isHalfMade(_ path: String) throws(DeviceFolderFault) -> Bool {
    do throws(FileError) { return try IncompleteFolder.isHalfMade(path) } catch {
      throw .folder(error)
    }
  }

  /// Removes every file that creating a device writes, and the mark.
  private static func clear(_ path: String) throws(DeviceFolderFault) {
    let names = DeviceFile.allCases.flatMap { file in
      file == .ledger ? ["", "-wal", "-shm", "-journal"].map { file.rawValue + $0 } : [file.rawValue]
    }
    do throws(FileError) { try IncompleteFolder.clear(path, of: names) } catch {
      throw .folder(error)
    }
  }

  /// Replaces the device by another one with a new key and id, so that no token counts any more. Trusted issuers, floors,
  /// uses, nonces and users are deleted, and the lock is locked. The policy, the number of starts and the audit log stay. If
  /// the device is anchored, a new counter replaces the old one, so that no copy of the old device can come back. A key in a TPM
  /// is replaced by another one there.
  ///
  /// It also works for a folder whose making or reset was interrupted, provided that its ledger is complete.
  ///
  /// - Throws: `folder` with `locked` while the folder is served, `missing` if it has no ledger, `file` if the key file is
  ///   damaged, and as
  ///   ``create(at:policy:tpm:random:clock:)`` does.
  package static func reset<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    try reset(at: path, operations: .tpm, random: &random, clock: clock)
  }

  package static func reset<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, operations: CounterOperations, random: inout Random, clock: borrowing Time
  ) throws(DeviceFolderFault) -> DeviceFolder {
    guard let now = clock.unixSeconds() else { throw .failed }
    try checkFolder(path)
    try requireWholeDevice(path)
    guard try DeviceFile.ledger.isPresent(in: path) else {
      for file in DeviceFile.allCases where try file.isPresent(in: path) {
        throw .file(.ledger, .file(FileError(.notFound, at: DeviceFile.ledger.path(in: path))))
      }
      throw .missing
    }
    let serving = try takeLock(of: path)
    _ = serving
    let ledger: Ledger
    do throws(LedgerError) {
      ledger = try Ledger(path: DeviceFile.ledger.path(in: path), limits: LedgerLimits())
    } catch { throw DeviceFolderFault(error) }
    let tpm = ledger.tpm.map { currentTPM(of: path) ?? $0 }
    let oldKey = try oldTPMKey(of: path)
    let groups = currentDescription(of: path)?.groups ?? []
    var (folder, secrets, epoch) = try newDevice(at: path, keyTPM: oldKey?.tpm, tpm: tpm, operations, &random)
    folder.groups = groups
    do throws(DeviceFolderFault) {
      // From here on the old device no longer exists, and the new one does not exist yet.
      try folder.removeDescription()
      // This comes before the ledger drops the old device id, so that an interrupted reset finds the counter again.
      if let tpm, let old = CounterPlace(tpm: tpm, deviceID: ledger.deviceID) {
        do throws(CounterFault) { try operations.undefine(old) } catch {
          guard error == .notDefined else { throw .counter(error) }
        }
      }
      // The old key file still names this key after an interruption here.
      if let oldKey {
        do throws(CounterFault) { try operations.keys.remove(oldKey) } catch {
          guard error == .notDefined else { throw .key(error) }
        }
      }
      do throws(LedgerError) {
        try ledger.reset(to: folder.descriptor.deviceID, realClock: now, epoch: epoch, tpm: tpm)
        try ledger.checkpoint()
      } catch { throw DeviceFolderFault(error) }
    } catch {
      // No file names the new key yet.
      do throws(CounterFault) { try secrets.removeFromTPM() } catch {}
      throw error
    }
    try folder.complete(with: secrets)
    return folder
  }

  static func takeLock(of path: String) throws(DeviceFolderFault) -> DirectoryLock {
    do throws(FileError) { return try DirectoryLock(directory: path) } catch {
      throw .folder(error)
    }
  }

  private static func newKey<Random: RandomSource & ~Copyable>(
    _ random: inout Random
  ) throws(DeviceFolderFault) -> P256PrivateKey {
    do throws(CryptographyFailure) { return try P256PrivateKey(random: &random) } catch { throw .failed }
  }

  /// Makes a new id, a key in `keyTPM` or else for a file, and a counter in `tpm` if there is one. Returns the folder, the key
  /// and the counter's value.
  private static func newDevice<Random: RandomSource & ~Copyable>(
    at path: String, keyTPM: String?, tpm: String?, _ operations: CounterOperations, _ random: inout Random
  ) throws(DeviceFolderFault) -> (folder: DeviceFolder, secrets: DeviceSecrets, epoch: UInt64?) {
    var fileKey: DeviceSecrets?
    if keyTPM == nil {
      let key = try newKey(&random)
      do throws(CryptographyFailure) { fileKey = try DeviceSecrets(scalar: key.scalar()) } catch { throw .failed }
    }
    for _ in 0..<8 {
      // The places in a TPM follow from the id, so if one is taken, another id gives another one.
      let deviceID: DeviceID
      do throws(RandomFailure) { deviceID = try random.fixedBytes() } catch { throw .failed }
      var made = fileKey
      if made == nil { made = try newTPMKey(for: deviceID, in: keyTPM, operations, &random) }
      guard let secrets = made else { continue }
      do throws(DeviceFolderFault) {
        let (folder, epoch) = try newFolder(at: path, deviceID, secrets, tpm: tpm, operations)
        return (folder, secrets, epoch)
      } catch {
        do throws(CounterFault) { try secrets.removeFromTPM() } catch {}
        guard error == .counter(.taken) else { throw error }
      }
    }
    throw keyTPM == nil ? .counter(.taken) : .key(.taken)
  }

  /// Returns the folder of a device with this id and key, and the value of its new counter if it has one.
  private static func newFolder(
    at path: String, _ deviceID: DeviceID, _ secrets: DeviceSecrets, tpm: String?, _ operations: CounterOperations
  ) throws(DeviceFolderFault) -> (folder: DeviceFolder, epoch: UInt64?) {
    let descriptor: DeviceDescriptor
    do throws(CryptographyFailure) {
      descriptor = try DeviceDescriptor(deviceID: deviceID, publicPoint: secrets.publicPoint)
    } catch { throw .failed }
    var place: CounterPlace?
    if let tpm {
      place = CounterPlace(tpm: tpm, deviceID: deviceID)
      guard place != nil else { throw .badTPMPath }
    }
    let folder = DeviceFolder(
      path: path, descriptor: descriptor, counter: place, tpmKey: secrets.tpmKey, operations: operations)
    guard let place else { return (folder, nil) }
    let counter = try secrets.counter(at: place, operations)
    do throws(CounterFault) { return (folder, try counter.define()) } catch { throw .counter(error) }
  }

  /// Makes a key in a TPM; nil if its place is taken.
  private static func newTPMKey<Random: RandomSource & ~Copyable>(
    for deviceID: DeviceID, in tpm: String?, _ operations: CounterOperations, _ random: inout Random
  ) throws(DeviceFolderFault) -> DeviceSecrets? {
    guard let tpm, let place = TPMKeyPlace(tpm: tpm, deviceID: deviceID) else { throw .badTPMPath }
    do throws(DeviceFolderFault) { return try DeviceSecrets(makingAt: place, operations.keys, &random) } catch {
      guard error == .key(.taken) else { throw error }
      return nil
    }
  }

  /// Returns the place of the key that the device at `path` has in a TPM; nil if its key is a file, or if its key file is lost.
  ///
  /// - Throws: `file` if the key file is damaged or cannot be read: it may name a key in a TPM, which a key in a file must not
  ///   replace unnoticed.
  private static func oldTPMKey(of path: String) throws(DeviceFolderFault) -> TPMKeyPlace? {
    guard try DeviceFile.key.isPresent(in: path) else { return nil }
    switch try readKeyFile(path) {
    case .tpm(let record): return record.place
    case .scalar: return nil
    case .corrupt: throw .file(.key, .corrupt)
    }
  }

  private static func newDescriptor<Random: RandomSource & ~Copyable>(
    _ publicPoint: P256Point, _ random: inout Random
  ) throws(DeviceFolderFault) -> DeviceDescriptor {
    do throws(CryptographyFailure) { return try DeviceDescriptor(of: publicPoint, random: &random) } catch {
      throw .failed
    }
  }

  /// Returns the TPM's path in the description of the device at `path`. The owner may have changed it.
  private static func currentTPM(of path: String) -> String? { currentDescription(of: path)?.counter?.tpm }

  private static func currentDescription(of path: String) -> DeviceDescription? {
    do throws(DeviceFolderFault) { return try readDescription(path) } catch { return nil }
  }

  /// Writes the files that depend on the device's id and key, the description last.
  private func complete(with secrets: DeviceSecrets) throws(DeviceFolderFault) {
    var keyText = ByteBuffer<1024>()
    do throws(KeyFault) { try secrets.encode(into: &keyText) } catch { throw .failed }
    try put(keyText.bytes, in: .key)
    try complete()
  }

  /// Writes the state of the lock, and the description last.
  private func complete() throws(DeviceFolderFault) {
    do throws(DeviceFileFault) { try lockStateFile.write(.locked) } catch { throw .file(.actuator, error) }
    try put(description().span, in: .description)
  }

  private func put(_ bytes: Span<UInt8>, in file: DeviceFile) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: file.path(in: path), overwrite: true)
    } catch { throw .file(file, .file(error)) }
  }

  private func removeDescription() throws(DeviceFolderFault) {
    do throws(FileError) { try Files.removeFile(at: DeviceFile.description.path(in: path)) } catch {
      guard error.kind == .notFound else { throw .file(.description, .file(error)) }
    }
  }

  private func description() -> [UInt8] {
    let anchor = counter.map { [("counter", $0.json)] } ?? []
    let key: [(String, JSONValue)] = hasKey ? [] : [("key", .string("elsewhere"))]
    let names: [(String, JSONValue)] =
      groups.isEmpty ? [] : [("groups", .array(groups.map { .string($0.description) }))]
    let members = [("version", .integer(Self.version))] + (descriptor.json.members ?? []) + names + key + anchor
    return JSONValue.object(members).pretty()
  }
}

extension P256PrivateKey {
  /// Makes a new key.
  ///
  /// Source: FIPS 186-5 §A.2.2, testing candidates. The first candidate is nearly always a valid scalar.
  ///
  /// - Throws: `CryptographyFailure`, also if the random source fails.
  init<Random: RandomSource & ~Copyable>(random: inout Random) throws(CryptographyFailure) {
    for _ in 0..<8 {
      let scalar: Secret<32>
      do throws(RandomFailure) { scalar = try random.secret() } catch { throw CryptographyFailure() }
      do throws(CryptographyFailure) {
        self = try P256PrivateKey(scalar: scalar)
        return
      } catch { continue }
    }
    throw CryptographyFailure()
  }
}

extension DeviceDescriptor {
  /// Makes the descriptor of a new device with this key and a random id.
  ///
  /// - Throws: `CryptographyFailure`, also if the random source fails.
  init<Random: RandomSource & ~Copyable>(
    of publicPoint: P256Point, random: inout Random
  ) throws(CryptographyFailure) {
    let deviceID: DeviceID
    do throws(RandomFailure) { deviceID = try random.fixedBytes() } catch { throw CryptographyFailure() }
    try self.init(deviceID: deviceID, publicPoint: publicPoint)
  }
}
