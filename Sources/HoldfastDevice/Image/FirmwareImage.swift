import HoldfastCore
import HoldfastFirmware
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

/// The image of a microcontroller's NOR flash, with one device: a file of mode 0600, since it holds the private key.
///
/// Held by a lock on the file for as long as this lives, against whatever runs the device. It is worked on in memory; each
/// change puts a whole new file in the place of the old one. What lies behind the flash that a device uses is kept.
public final class FirmwareImage {
  /// The longest file, in bytes.
  public static let maximumByteCount = 16 * 1024 * 1024

  typealias Store = FlashStore<SimulatedFlash, OpenSSLCryptography>

  public let path: String
  /// What the world may know of the device.
  public let descriptor: DeviceDescriptor
  /// What the owner allows.
  public let policy: DevicePolicy
  private var file: LockedFile
  private var bytes: SecretBytes
  private let operations: FileOperations

  init(
    _ file: consuming LockedFile, _ bytes: consuming SecretBytes, _ descriptor: DeviceDescriptor,
    _ policy: DevicePolicy, _ operations: FileOperations
  ) {
    (path, self.descriptor, self.policy, self.operations) = (file.path, descriptor, policy, operations)
    self.file = file
    self.bytes = bytes
  }

  /// Opens an image, and checks identity and memory of the device. Throws `file`, `tooShort`, `provision`, `store`.
  public static func open(
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

  /// What the owner may see of a provision; nil for one that is not of one piece.
  private static func known(
    _ provision: borrowing Provision
  ) -> (descriptor: DeviceDescriptor, policy: DevicePolicy)? {
    guard let policy = DevicePolicy(provision.policy) else { return nil }
    do throws(CryptographyFailure) {
      guard try P256PrivateKey(scalar: provision.scalar).publicPoint == provision.publicPoint else { return nil }
      return (try DeviceDescriptor(deviceID: provision.deviceID, publicPoint: provision.publicPoint), policy)
    } catch { return nil }
  }
}

extension FirmwareImage {
  /// Lends what the device keeps, and what its owner gave it, to be looked at.
  func look<Result: ~Copyable>(
    _ body: (inout Store, borrowing Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    var draft = bytes.withBytes { SecretBytes(copying: $0) }
    return try edit(&draft) { (store, provision) throws(LedgerFault) in try body(&store, provision) }
  }

  /// Lends both to be changed, and puts the changed image in the file's place. Where anything fails, nothing has changed.
  func change<Result: ~Copyable>(
    _ body: (inout Store, inout Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    var draft = bytes.withBytes { SecretBytes(copying: $0) }
    // Whatever changes is audited.
    var isChanged = false
    let result = try edit(&draft) { (store, provision) throws(LedgerFault) in
      let before = store.audit
      let result = try body(&store, &provision)
      isChanged = store.audit != before
      return result
    }
    guard isChanged else { return result }
    do throws(FileError) { try file.replace(with: draft.bytes, operations: operations) } catch {
      throw .unwritable(error)
    }
    bytes = draft
    return result
  }

  /// The same, with what an open image cannot have any more as a failure of its own.
  private func edit<Result: ~Copyable>(
    _ draft: inout SecretBytes, _ body: (inout Store, inout Provision) throws(LedgerFault) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(FirmwareImageFault) { return try Self.edit(&draft, body) } catch {
      switch error {
      case .ledger(let fault): throw fault
      case .provision, .store: throw .damaged
      case .file, .tooShort, .tooManyCommands, .failed: throw .failed
      }
    }
  }

  static func edit<Result: ~Copyable>(
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
}
