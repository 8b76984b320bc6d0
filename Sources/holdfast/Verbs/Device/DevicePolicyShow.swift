import ArgumentParser
import HoldfastDevice
import HoldfastStorage

struct DevicePolicyShow: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Show what the device's owner allows, and whether the file is in force.",
    discussion: """
      The policy is the file policy.json in the device's folder. A running device sees changes at once. That of an image was \
      given to device init.
      """,
    examples: [
      "holdfast device policy --dir lock",
      "holdfast device policy --dir lock --json",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let reading = owned.policyReading
    if reading.fault == .unreadable { try sayWhy(owned.path) }
    if let fault = reading.fault {
      throw Failure(.malformed, "the device denies everything: \(fault.text())", hint: "mend or restore the file")
    }
    for line in String(decoding: reading.policy.json(), as: UTF8.self).split(separator: "\n") {
      Console.result(String(line))
    }
  }

  /// Reads the file once more, as a device does, for the reason why it cannot be read.
  private func sayWhy(_ folder: String) throws(Failure) {
    do throws(FileError) {
      _ = try Files.readFile(
        at: DeviceFile.policy.path(in: folder), limit: DevicePolicy.maximumByteCount,
        requirements: [.owned, .noSymbolicLink])
    } catch { throw Failure(error, hint: "restore it; the device denies everything meanwhile") }
  }
}
