import ArgumentParser
import HoldfastDevice
import HoldfastKeys
import HoldfastOpenSSL

struct DeviceReset: Verb {
  static let configuration = CommandConfiguration(
    commandName: "reset", abstract: "Make a new device of this one: another key and id, nobody trusted, no token good.",
    discussion: """
      Policy and audit log stay, and the reset is written there. It cannot be undone. Also for a device whose making or \
      reset was interrupted. One that is anchored gets a new counter; so does one whose ledger was rolled back.
      """,
    examples: [
      "holdfast device reset --dir lock --yes"
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Do it: every prover must be enrolled again.")
  var yes = false

  mutating func perform() throws(Failure) {
    let dir = try device.folder(because: "to be rid of an image, make another one and delete this")
    guard yes else {
      throw Failure(
        .usage, "a reset cannot be undone: every prover of this device must be enrolled again",
        hint: "add --yes to do it"
      )
    }
    var random = SystemRandom()
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try DeviceFolder.reset(at: dir, random: &random, clock: SystemClock())
    } catch { throw Failure(error, folder: dir) }
    if output.json {
      Console.result(folder.descriptor.json)
    } else {
      Console.result("device \(hexadecimal(folder.descriptor.deviceID)) in \(dir)")
      Console.noteThatNobodyIsTrusted(by: folder)
    }
  }
}
