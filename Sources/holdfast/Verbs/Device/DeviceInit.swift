import ArgumentParser
import HoldfastDevice
import HoldfastKeys
import HoldfastOpenSSL

struct DeviceInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a new device: key, id, ledger, and a policy for the simulated lock.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help:
      "Anchor it: a counter in this TPM, such as /dev/tpmrm0 or the socket of swtpm, tells old copies from the device.")
  var tpm: String?

  mutating func perform() throws(Failure) {
    var random = SystemRandom()
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try DeviceFolder.create(at: device.dir, tpm: tpm, random: &random, clock: SystemClock())
    } catch { throw Failure(making: error, folder: device.dir) }
    if output.json {
      Console.result(folder.descriptor.json)
    } else {
      Console.result("device \(hexadecimal(folder.descriptor.deviceID)) in \(device.dir)")
      Console.note("it trusts nobody yet; next: holdfast device trust --dir \(device.dir.shellWord) ISSUER.jwk")
    }
  }
}
