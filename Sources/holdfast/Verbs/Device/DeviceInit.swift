import ArgumentParser
import HoldfastDevice
import HoldfastKeys
import HoldfastOpenSSL

struct DeviceInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a new device: key, id, ledger, and a policy for the simulated lock.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    var random = SystemRandom()
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try DeviceFolder.create(at: device.dir, random: &random, clock: SystemClock())
    } catch { throw Failure(making: error, folder: device.dir) }
    if output.json {
      Console.result(folder.descriptor.json)
    } else {
      Console.result("device \(hexadecimal(folder.descriptor.deviceID)) in \(device.dir)")
      Console.note("it trusts nobody yet; next: holdfast device trust --dir \(device.dir.shellWord) ISSUER.jwk")
    }
  }
}
