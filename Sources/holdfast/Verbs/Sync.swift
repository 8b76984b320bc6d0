import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastProver

struct Sync: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Exchange mail with a service: fetch bulletins for devices, and hand in pages of their audit logs.",
    discussion: """
      prove delivers the bulletins to the devices that it visits, and takes the pages along. Neither needs trust in the prover: the \
      issuer signs bulletins, and the device seals pages. So devices without a network hear of revocations, and their audit logs are \
      read at home. enroll exchanges mail, too.
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
    // Revocations come first: they arrive even if the service does not take a log.
    var counts: [Int] = []
    for entry in states { counts.append(try source(for: entry).fetch(for: entry.device, state: state)) }
    for (entry, count) in zip(states, counts) {
      let device = entry.device
      let pageCount = try source(for: entry).handInPages(of: device, state: state)
      if pageCount == nil {
        Console.note(
          "the service takes no audit log of device \(hexadecimal(device)): it is of an earlier version, or the device is not "
            + "registered in its folder")
      }
      if output.json {
        results.append(
          .object([
            ("device", .string(hexadecimal(device))), ("bulletins", .integer(UInt64(count))),
            ("pages_handed_in", .integer(UInt64(pageCount ?? 0))),
          ]))
      } else {
        let pages = pageCount.flatMap { $0 > 0 ? ", \($0) page\($0 == 1 ? "" : "s") of its audit log handed in" : nil }
        Console.result(
          "device \(hexadecimal(device)): \(count) bulletin\(count == 1 ? "" : "s") to deliver\(pages ?? "")")
      }
    }
    if output.json { Console.result(.object([("devices", .array(results))])) }
  }

  private func source(for entry: EnrolmentState) throws(Failure) -> MailSource {
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
