import HoldfastCore
import HoldfastFirmware
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

extension FirmwareImage {
  /// Makes an image with a new device: key and id, the issuers that it trusts, and a policy. The clock floor starts at the
  /// real clock.
  ///
  /// Throws `file`, with `exists` where anything has the name, `tooManyCommands`, `ledger`, and `failed` also without a real
  /// clock.
  public static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy = .forSimulatedLock, trusting issuers: borrowing IssuerTable = IssuerTable(),
    random: inout Random, clock: borrowing Time, operations: FileOperations = .system
  ) throws(FirmwareImageFault) -> FirmwareImage {
    guard let now = clock.unixSeconds() else { throw .failed }
    guard let rules = FirmwarePolicy(policy) else { throw .tooManyCommands }
    let descriptor: DeviceDescriptor
    let provision: Provision
    do throws(CryptographyFailure) {
      let key = try P256PrivateKey(random: &random)
      descriptor = try DeviceDescriptor(of: key, random: &random)
      provision = Provision(
        deviceID: descriptor.deviceID, scalar: try key.scalar(), publicPoint: key.publicPoint, issuers: IssuerTable(),
        policy: rules)
    } catch { throw .failed }
    var bytes = try blank(with: provision, clockFloor: now)
    let digest = PolicyReading(policy).digest
    try edit(&bytes) { (store, provision) throws(LedgerFault) in
      try store.attempt { (store) throws(StoreFailure) in try store.note(.created(descriptor.deviceID), realClock: now)
      }
      for index in 0..<issuers.count {
        guard let key = issuers[issuers.keyID(index)] else { throw .failed }
        _ = try trust(key, in: &store, &provision, realClock: now)
      }
      try store.attempt { (store) throws(StoreFailure) in try store.note(.policySeen(digest), realClock: now) }
    }
    let file: LockedFile
    do throws(FileError) {
      file = try LockedFile(creatingAt: path, bytes.bytes, operations: operations)
    } catch { throw .file(error) }
    return FirmwareImage(file, bytes, descriptor, policy, operations)
  }

  /// Erased flash with this identity and an empty memory.
  private static func blank(
    with provision: borrowing Provision, clockFloor: UInt64
  ) throws(FirmwareImageFault) -> SecretBytes {
    var bytes = SecretBytes(zeros: FlashLayout.byteCount)
    var span = bytes.mutableBytes
    try unsafe span.withUnsafeMutableBytes { (memory) throws(FirmwareImageFault) in
      unsafe memory.initializeMemory(as: UInt8.self, repeating: 0xff)
      var cryptography = OpenSSLCryptography()
      var flash = unsafe SimulatedFlash(memory)
      do throws(ProvisionFault) { try provision.write(into: &flash, using: &cryptography) } catch {
        throw .provision(error)
      }
      do throws(StoreFault) {
        _ = try Store.create(
          in: flash, clockFloor: clockFloor, using: OpenSSLCryptography())
      } catch { throw .store(error) }
    }
    return bytes
  }
}
