import HoldfastDevice
import HoldfastKeys
import HoldfastStorage

/// A device as its owner's verbs see it, wherever it is kept.
protocol OwnedDevice {
  associatedtype Kept: OwnerLedger
  var path: String { get }
  /// The option that names it.
  static var option: String { get }
  var descriptor: DeviceDescriptor { get }
  var policyReading: PolicyReading { get }
  static func opened(_ path: String) throws(Failure) -> Self
  func ledger() throws(Failure) -> Kept
  /// What guards or holds the ledger: a name of at most ten letters, and its state.
  func storage(of ledger: Kept) throws(Failure) -> (name: String, state: String)
}

extension DeviceFolder: OwnedDevice {
  static var option: String { "--dir" }

  static func opened(_ path: String) throws(Failure) -> DeviceFolder {
    do throws(DeviceFolderFault) { return try open(at: path) } catch { throw Failure(error, folder: path) }
  }

  var policyReading: PolicyReading { policy.read() }

  func ledger() throws(Failure) -> Ledger {
    do throws(DeviceFolderFault) { return try openLedger() } catch { throw Failure(error, folder: path) }
  }

  func storage(of ledger: Ledger) -> (name: String, state: String) { ("anchor", counter?.text ?? "none") }
}

extension CounterPlace {
  fileprivate var text: String { "counter 0x\(String(index, radix: 16)) of the TPM at \(tpm)" }
}

extension FirmwareImage: OwnedDevice {
  static var option: String { "--firmware" }
  var policyReading: PolicyReading { PolicyReading(policy) }

  static func opened(_ path: String) throws(Failure) -> FirmwareImage {
    do throws(FirmwareImageFault) { return try open(at: path) } catch { throw Failure(error, image: path) }
  }

  func ledger() -> FirmwareImage { self }

  func storage(of ledger: FirmwareImage) throws(Failure) -> (name: String, state: String) {
    let use = try recording { () throws(LedgerFault) in try slotUse() }
    return ("flash", "slot \(use.number) in force, \(use.usedByteCount) of \(use.byteCount) bytes used")
  }
}

/// Runs a step on the ledger.
@discardableResult
func recording<Result: ~Copyable>(_ body: () throws(LedgerFault) -> Result) throws(Failure) -> Result {
  do throws(LedgerFault) { return try body() } catch { throw Failure(error) }
}
