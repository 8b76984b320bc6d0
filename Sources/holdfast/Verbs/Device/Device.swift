import ArgumentParser
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux

struct Device: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create, show and serve a device, the embedded verifier.",
    examples: [
      "holdfast device init --dir lock",
      "holdfast device serve --dir lock --listen unix:/run/lock.sock",
    ],
    subcommands: [
      DeviceInit.self, DeviceShow.self, DeviceTrust.self, DeviceBulletin.self, DevicePolicyVerb.self, DeviceFloor.self,
      DeviceUser.self,
      DeviceServe.self, DeviceBridge.self, DeviceAudit.self, DeviceCouriers.self, DeviceReset.self,
    ])
}

/// The options for the place of the device: a folder, or the image of a microcontroller's flash.
struct DeviceOptions: ParsableArguments {
  @Option(help: "The device's folder.", completion: .directory)
  var dir: String?

  @Option(help: "Instead of a folder: the image of a microcontroller's flash.", completion: .file())
  var firmware: String?

  enum Place {
    case folder(String)
    case image(String)
  }

  func place() throws(Failure) -> Place {
    switch (dir, firmware) {
    case (let dir?, nil): return .folder(dir)
    case (nil, let firmware?): return .image(firmware)
    case (nil, nil):
      throw Failure(.usage, "the device is not named", hint: "name its folder with --dir, or its image with --firmware")
    case (_?, _?):
      throw Failure(.usage, "a device is either in a folder or in an image", hint: "use --dir or --firmware, not both")
    }
  }

  /// Returns the folder. For an operation that is impossible with an image, `reason` explains this.
  func folder(because reason: String) throws(Failure) -> String {
    switch try place() {
    case .folder(let path): return path
    case .image:
      throw Failure(
        .usage, "this command does not accept --firmware: \(reason)", hint: "use --dir with a device's folder")
    }
  }
}

/// A verb of a device's owner that works with both a folder and an image.
protocol OwnerVerb: Verb {
  var device: DeviceOptions { get }
  /// Checks the arguments before anything is opened.
  func check() throws(Failure)
  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure)
}

extension OwnerVerb {
  func check() throws(Failure) {}

  mutating func perform() throws(Failure) {
    try check()
    try performAtPlace()
  }

  /// Opens the device in its folder or image, and performs the verb.
  func performAtPlace() throws(Failure) {
    switch try device.place() {
    case .folder(let path): try perform(on: DeviceFolder.opened(path))
    case .image(let path): try perform(on: FirmwareImage.opened(path))
    }
  }
}

/// A device as its owner's verbs see it, in a folder or an image.
protocol OwnedDevice {
  associatedtype Kept: OwnerLedger
  var path: String { get }
  /// The option that names the device's place.
  static var option: String { get }
  var descriptor: DeviceDescriptor { get }
  /// Reads the policy that is in force with `ledger`.
  func policyReading(_ ledger: Kept) throws(Failure) -> PolicyReading
  /// The place of the private key.
  var keyText: String { get }
  static func opened(_ path: String) throws(Failure) -> Self
  func ledger() throws(Failure) -> Kept
  /// Returns the store or guard of the ledger: its name of at most ten letters, and its state.
  func storage(of ledger: Kept) throws(Failure) -> (name: String, state: String)
}

extension DeviceFolder: OwnedDevice {
  static var option: String { "--dir" }

  static func opened(_ path: String) throws(Failure) -> DeviceFolder {
    do throws(DeviceFolderFault) { return try open(at: path) } catch { throw Failure(error, folder: path) }
  }

  func policyReading(_ ledger: Ledger) throws(Failure) -> PolicyReading {
    do throws(DeviceFolderFault) { return try policy(of: ledger).read() } catch { throw Failure(error, folder: path) }
  }

  var keyText: String {
    if let tpmKey { return "handle 0x\(String(tpmKey.handle, radix: 16)) of the TPM at \(tpmKey.tpm)" }
    return hasKey ? "in a file" : "elsewhere"
  }

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
  func policyReading(_ ledger: FirmwareImage) -> PolicyReading { PolicyReading(policy) }
  var keyText: String { "in the image" }

  static func opened(_ path: String) throws(Failure) -> FirmwareImage {
    do throws(FirmwareImageFault) { return try open(at: path) } catch { throw Failure(error, image: path) }
  }

  func ledger() -> FirmwareImage { self }

  func storage(of ledger: FirmwareImage) throws(Failure) -> (name: String, state: String) {
    let use = try recording { () throws(LedgerFault) in try slotUse() }
    return ("flash", "slot \(use.number) in force, \(use.usedByteCount) of \(use.byteCount) bytes used")
  }
}

/// Runs a step on the ledger and converts its fault to a failure.
@discardableResult
func recording<Result: ~Copyable>(_ body: () throws(LedgerFault) -> Result) throws(Failure) -> Result {
  do throws(LedgerFault) { return try body() } catch { throw Failure(error) }
}
