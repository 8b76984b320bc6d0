import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastProver

struct Sync: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Fetch the bulletins of a service, which prove then delivers to the devices that it visits.",
    discussion: """
      A bulletin is signed by the issuer, so that a prover which carries it is not trusted. It reaches devices that have no network. \
      enroll fetches them, too.
      """,
    examples: [
      "holdfast sync --state phone",
      "holdfast sync --state phone --service https://a.example",
      "holdfast sync --state phone --service service",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(
    help:
      "The service's folder, or one to eight URLs with commas between them. By default, the service that issued the token, or the one of the last enrolment.",
    completion: .directory)
  var service: String?

  @OptionGroup var calls: ServiceCallOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let states = try reading(state) { (prover) throws(ProverError) in try prover.status(device: nil) }
    var results: [JSONValue] = []
    for entry in states {
      let device = entry.device
      let count = try source(for: entry).fetch(for: device, state: state)
      if output.json {
        results.append(.object([("device", .string(hexadecimal(device))), ("bulletins", .integer(UInt64(count)))]))
      } else {
        Console.result("device \(hexadecimal(device)): \(count) bulletin\(count == 1 ? "" : "s") to deliver")
      }
    }
    if output.json { Console.result(.object([("devices", .array(results))])) }
  }

  private func source(for entry: EnrolmentState) throws(Failure) -> BulletinSource {
    if let service, !ServiceAddress.hasScheme(service) {
      try calls.checkUnused(without: "the URL of a service")
      return .folder(service)
    }
    return .online(
      try calls.services(
        service ?? ServiceCallOptions.kept, of: "--service", state: state, issuer: entry.service),
      timeoutSeconds: try calls.timeoutSeconds())
  }
}
