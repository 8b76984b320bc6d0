import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastProver

struct Unenroll: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unenroll", abstract: "Remove the enrolment of a device from a prover's state folder.",
    discussion: """
      Nobody is told: to make tokens that were copied useless, revoke the device's generation at the service. The command asks \
      first.
      """,
    examples: [
      "holdfast unenroll --state phone --device lock.json",
      "holdfast unenroll --state phone --device lock.json --yes",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(help: "The device: its id (32 hexadecimal digits) or its descriptor.", completion: .file())
  var device: String

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let id = try DeviceID(deviceArgument: device)
    let folder = ProverFolder(path: state)
    _ = try reading(folder) { () throws(StateFolderFault) in try folder.requiredEntry(of: id) }
    if !yes { try Confirmation.ask("the enrolment of device \(hexadecimal(id)) cannot be restored", word: "unenroll") }
    try writing(state) { (prover) throws(ProverError) in try prover.unenroll(id) }
    if output.json {
      Console.result(.object([("device", .string(hexadecimal(id))), ("removed", .bool(true))]))
    } else {
      Console.result("device \(hexadecimal(id)): no longer enrolled")
    }
  }
}
