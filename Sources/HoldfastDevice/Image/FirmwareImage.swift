import HoldfastCore
import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux

/// The image of a microcontroller's NOR flash, with one device. The file has mode 0600, because it holds the private key.
///
/// A lock on the file excludes any program that runs the device for as long as this object lives. Changes are made in memory;
/// each one then replaces the whole file. Bytes after the flash that a device uses are kept.
package final class FirmwareImage {
  /// The most bytes that the file may have.
  package static let maximumByteCount = 16 * 1024 * 1024

  package typealias Store = FlashStore<SimulatedFlash, OpenSSLCryptography>

  /// The path of the file.
  package let path: String
  /// The public facts about the device: its id and public key.
  package let descriptor: DeviceDescriptor
  /// The policy of the device's owner.
  package let policy: DevicePolicy
  private var file: LockedFile
  private var bytes: SecretBytes
  private let operations: FileOperations

  package init(
    _ file: consuming LockedFile, _ bytes: consuming SecretBytes, _ descriptor: DeviceDescriptor,
    _ policy: DevicePolicy, _ operations: FileOperations
  ) {
    (path, self.descriptor, self.policy, self.operations) = (file.path, descriptor, policy, operations)
    self.file = file
    self.bytes = bytes
  }

  /// Opens an image, and checks the device's identity and its store.
  ///
  /// - Throws: `file`, `tooShort`, `provision`, `store`.
  package static func open(
    at path: String, operations: FileOperations = .system
  ) throws(FirmwareImageFault) -> FirmwareImage {
    var bytes = SecretBytes(zeros: 0)
    let file = try lock(path) { bytes = SecretBytes(copying: $0) }
    guard bytes.count >= FlashLayout.byteCount else { throw .tooShort }
    guard let device = try edit(&bytes, { (_, provision) in Self.known(provision) }) else { throw .provision(.damaged) }
    return FirmwareImage(file, bytes, device.descriptor, device.policy, operations)
  }

  private static func lock(
    _ path: String, _ body: (Span<UInt8>) -> Void
  ) throws(FirmwareImageFault) -> LockedFile {
    do throws(FileError) { return try LockedFile(path: path, limit: maximumByteCount, body) } catch {
      throw .file(error)
    }
  }

  /// Returns the owner's view of a provision; nil if its parts do not belong together.
  package static func known(
    _ provision: borrowing Provision
  ) -> (descriptor: DeviceDescriptor, policy: DevicePolicy)? {
    guard var policy = DevicePolicy(provision.policy) else { return nil }
    policy.auditRules = AuditRules(provision.home)
    do throws(CryptographyFailure) {
      guard try P256PrivateKey(scalar: provision.scalar).publicPoint == provision.publicPoint else { return nil }
      return (try DeviceDescriptor(deviceID: provision.deviceID, publicPoint: provision.publicPoint), policy)
    } catch { return nil }
  }
}

extension FirmwareImage {
  /// Calls `body` with the store and the provision, for reading.
  package func look<Result: ~Copyable>(
    _ body: (inout Store, borrowing Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    var draft = bytes.withBytes { SecretBytes(copying: $0) }
    return try edit(&draft) { (store, provision) throws(LedgerFault) in try body(&store, provision) }
  }

  /// Calls `body` with the store and the provision, and replaces the file with the changed image. If anything fails, nothing
  /// has changed.
  package func change<Result: ~Copyable>(
    _ body: (inout Store, inout Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    var draft = bytes.withBytes { SecretBytes(copying: $0) }
    // Every change but one of the home's key for agreement is audited, so an unchanged audit log means that nothing else changed.
    var isChanged = false
    let result = try edit(&draft) { (store, provision) throws(LedgerFault) in
      let (before, home) = (store.audit, provision.home)
      let result = try body(&store, &provision)
      isChanged = store.audit != before || provision.home != home
      return result
    }
    guard isChanged else { return result }
    do throws(FileError) { try file.replace(with: draft.bytes, operations: operations) } catch {
      throw .unwritable(error)
    }
    bytes = draft
    return result
  }

  /// Does the same as the static function, and reports faults that an open image cannot have any more as `failed`.
  private func edit<Result: ~Copyable>(
    _ draft: inout SecretBytes, _ body: (inout Store, inout Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(FirmwareImageFault) { return try Self.edit(&draft, body) } catch {
      switch error {
      case .ledger(let fault): throw fault
      case .provision, .store: throw .damaged
      case .file, .tooShort, .tooManyCommands, .unsupportedRules, .failed: throw .failed
      }
    }
  }

  package static func edit<Result: ~Copyable>(
    _ bytes: inout SecretBytes, _ body: (inout Store, inout Provision) throws(LedgerFault) -> Result
  ) throws(FirmwareImageFault) -> Result {
    var span = bytes.mutableBytes
    return try unsafe span.withUnsafeMutableBytes { (memory) throws(FirmwareImageFault) -> Result in
      var cryptography = OpenSSLCryptography()
      var flash = unsafe SimulatedFlash(memory)
      var provision = try readProvision(flash)
      var store = try openStore(unsafe SimulatedFlash(memory))
      let result: Result
      do throws(LedgerFault) { result = try body(&store, &provision) } catch { throw .ledger(error) }
      do throws(ProvisionFault) { try provision.write(into: &flash, using: &cryptography) } catch {
        throw .provision(error)
      }
      return result
    }
  }

  private static func readProvision(_ flash: borrowing SimulatedFlash) throws(FirmwareImageFault) -> Provision {
    var cryptography = OpenSSLCryptography()
    do throws(ProvisionFault) { return try Provision(reading: flash, using: &cryptography) } catch {
      throw .provision(error)
    }
  }

  private static func openStore(
    _ flash: consuming SimulatedFlash
  ) throws(FirmwareImageFault) -> Store {
    do throws(StoreFault) { return try Store.open(flash, using: OpenSSLCryptography()) } catch {
      throw .store(error)
    }
  }

  /// Creates an image with a new device: its key and id, the issuers that it trusts, a policy, and at most 8 groups that it belongs to,
  /// each of 1 to 32 bytes and named once. The clock floor starts at the real clock. The policy's bound of the audit log has no effect,
  /// because its slot of the flash bounds it.
  ///
  /// - Throws: `file`, with `exists` if the path is taken, `tooManyCommands`, `unsupportedRules`, `ledger`, and `failed`, also without a real
  ///   clock.
  package static func create<Random: RandomSource & ~Copyable, Time: Clock & ~Copyable>(
    at path: String, policy: DevicePolicy = .forSimulatedLock, trusting issuers: borrowing IssuerTable = IssuerTable(),
    groups: [BoundedText<32>] = [], random: inout Random, clock: borrowing Time, operations: FileOperations = .system
  ) throws(FirmwareImageFault) -> FirmwareImage {
    guard let now = clock.unixSeconds() else { throw .failed }
    guard policy.conditions.isEmpty, policy.introducers.isEmpty else { throw .unsupportedRules }
    guard let rules = FirmwarePolicy(policy) else { throw .tooManyCommands }
    let home = policy.auditHome.map {
      ProvisionedHome(keyID: $0, refusesWhenFull: policy.auditRules.refusesWhenFull)
    }
    var kept = policy
    kept.auditRules = AuditRules(home)
    let descriptor: DeviceDescriptor
    let provision: Provision
    do throws(CryptographyFailure) {
      let key = try P256PrivateKey(random: &random)
      descriptor = try DeviceDescriptor(of: key.publicPoint, random: &random)
      provision = Provision(
        deviceID: descriptor.deviceID, scalar: try key.scalar(), publicPoint: key.publicPoint, issuers: IssuerTable(),
        policy: rules, groups: groups,
        home: home)
    } catch { throw .failed }
    var bytes = try blank(with: provision, clockFloor: now)
    let digest = PolicyReading(kept).digest
    try edit(&bytes) { (store, provision) throws(LedgerFault) in
      try store.attempt { (store) throws(DeviceFault) in try store.note(.created(descriptor.deviceID), realClock: now)
      }
      for index in 0..<issuers.count {
        guard let key = issuers[issuers.keyID(index)] else { throw .failed }
        _ = try trust(key, in: &store, &provision, realClock: now)
      }
      try store.attempt { (store) throws(DeviceFault) in try store.note(.policySeen(digest), realClock: now) }
    }
    let file: LockedFile
    do throws(FileError) {
      file = try LockedFile(creatingAt: path, bytes.bytes, operations: operations)
    } catch { throw .file(error) }
    return FirmwareImage(file, bytes, descriptor, kept, operations)
  }

  /// Returns erased flash with this provision and an empty store.
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

extension AuditRules {
  /// Creates the rules of a device in an image. Its slot of the flash bounds the log, whatever bound the policy names; one that refuses
  /// has to name some bound, and gets the least one.
  fileprivate init(_ home: ProvisionedHome?) {
    self.init()
    self.home = home?.keyID
    refusesWhenFull = home?.refusesWhenFull ?? false
    bound = refusesWhenFull ? DevicePolicy.auditBounds.lowerBound : nil
  }
}

/// The reason that the image of a device's flash could not be made or opened.
package enum FirmwareImageFault: Error, Equatable {
  /// The file is missing, accessible to others, in use, or cannot be used for another reason.
  case file(FileError)
  /// The file is shorter than the flash that a device uses.
  case tooShort
  /// The image holds no valid provision.
  case provision(ProvisionFault)
  /// The image holds a provision, but the device's store cannot be read.
  case store(StoreFault)
  /// The policy of a new image names more commands than there is room for.
  case tooManyCommands
  /// The policy of a new image has rules that depend on parameters or circumstances, which a microcontroller would ignore.
  case unsupportedRules
  /// An issuer of a new image cannot be trusted.
  case ledger(LedgerFault)
  /// The random source, the clock or the cryptographic library failed.
  case failed
}
