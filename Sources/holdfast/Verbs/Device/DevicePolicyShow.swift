import ArgumentParser
import HoldfastDevice

struct DevicePolicyShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Show what the device's owner allows, and whether the file is in force.",
    discussion: "The policy is the file policy.json in the device's folder. A running device sees changes at once.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let reading = try device.open().policy.read()
    if let fault = reading.fault {
      throw Failure(.malformed, "the device denies everything: \(fault.text)", hint: "mend or restore the file")
    }
    Console.result(String(decoding: reading.policy.json(), as: UTF8.self).trimmed)
  }
}

extension String {
  /// Without the line ends at its end.
  fileprivate var trimmed: String {
    var text = Substring(self)
    while text.last == "\n" { text.removeLast() }
    return String(text)
  }
}
