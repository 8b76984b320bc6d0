import ArgumentParser
import HoldfastDevice

struct Device: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make, show and serve a device: the embedded verifier.",
    subcommands: [
      DeviceInit.self, DeviceShow.self, DeviceTrust.self, DevicePolicyShow.self, DeviceFloor.self, DeviceUser.self,
      DeviceServe.self, DeviceBridge.self, DeviceAudit.self, DeviceReset.self,
    ])
}

/// Where the device is.
struct DeviceOptions: ParsableArguments {
  @Option(help: "The device's folder.")
  var dir: String

  func open() throws(Failure) -> DeviceFolder {
    do throws(DeviceFolderFault) { return try DeviceFolder.open(at: dir) } catch { throw Failure(error, folder: dir) }
  }

  func openLedger(_ folder: DeviceFolder) throws(Failure) -> Ledger {
    do throws(DeviceFolderFault) { return try folder.openLedger() } catch { throw Failure(error, folder: dir) }
  }
}

/// Runs a step on the ledger.
@discardableResult
func recording<Result>(_ body: () throws(LedgerFault) -> Result) throws(Failure) -> Result {
  do throws(LedgerFault) { return try body() } catch { throw Failure(error) }
}
