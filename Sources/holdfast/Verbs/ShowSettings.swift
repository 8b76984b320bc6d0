import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastProver

struct ShowSettings: Verb {
  static let configuration = CommandConfiguration(
    commandName: "settings", abstract: "Show the settings that the issuer gave the app with a token.",
    discussion: """
      The issuer signed the settings, and they belong to the enrolment for one device. The next enrolment replaces them. \
      Without settings, the command prints nothing. On a terminal, control characters are escaped; --out writes the exact \
      bytes. No connection is made.
      """,
    examples: [
      "holdfast settings --state phone",
      "holdfast settings --state phone --device lock.json --out settings.json",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(
    help: "The device of the enrolment: its id or its descriptor. Needed only if several are enrolled.",
    completion: .file())
  var device: String?

  @Option(help: "A file for the settings, byte for byte.", completion: .file())
  var out: String?

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let states = try reading(state) { (prover) throws(ProverError) in try prover.status(device: id) }
    guard states.count == 1, let entry = states.first else {
      throw Failure(StateFolderFault.severalEnrolled(states.map(\.device)), folder: state)
    }
    if case .failure(let fault) = entry.enrolment { throw Failure(fault, folder: state) }
    let settings = entry.settings
    if let out {
      guard let settings else {
        throw Failure(.malformed, "the issuer gave no settings", hint: "an operator sets them in the service's policy")
      }
      try Output.write(settings.bytes, to: out)
    }
    if output.json {
      Console.result(
        .object([
          ("device_id", .string(hexadecimal(entry.device))),
          ("type", settings.map { .string($0.kind.rawValue) } ?? .null),
          ("text", settings?.text.map { .string($0) } ?? .null), ("base64", settings?.json["value"] ?? .null),
        ]))
    } else if let settings {
      Console.result(out.map { "\(settings.bytes.count) bytes in \($0)" } ?? lines(of: settings))
    }
  }

  /// The settings as text whose control characters are escaped, except line ends.
  private func lines(of settings: AppSettings) -> String {
    guard let text = settings.text else { return settings.json["value"]?.text ?? "" }
    return text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
      .map { String($0).printable }.joined(separator: "\n")
  }
}
