import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastProver

struct Unenroll: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unenroll", abstract: "Remove the enrolment of a device from a prover's state folder.",
    discussion: """
      With --service, the online service is told before: it revokes the token, and its operators see that the prover left. Without \
      a URL, this is the service that issued the token, or the one of the last enrolment. If it \
      cannot be told, the command warns and goes on. A device is offline and accepts a copied token until it expires or the \
      device's generation is revoked. The command asks first.
      """,
    examples: [
      "holdfast unenroll --state phone --device lock.json",
      "holdfast unenroll --state phone --device lock.json --yes --service",
      "holdfast unenroll --state phone --device lock.json --service https://a.test",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(help: "The device: its id (32 hexadecimal digits) or its descriptor.", completion: .file())
  var device: String

  @Option(
    defaultAsFlag: ServiceCallOptions.kept,
    help: "Tell the online service: one to eight URLs with commas between them. Without a value, the service is known.")
  var service: String?

  @OptionGroup var calls: ServiceCallOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    if service == nil { try calls.checkUnused(without: "--service") }
    let id = try DeviceID(deviceArgument: device)
    let folder = ProverFolder(path: state)
    let entry = try reading(folder) { () throws(StateFolderFault) in try folder.requiredEntry(of: id) }
    let enrolment = try? entry.load()
    if !yes { try Confirmation.ask("the enrolment of device \(hexadecimal(id)) cannot be restored", word: "unenroll") }
    let loss = try remove(id, enrolment)
    if output.json {
      let told: [(String, JSONValue)] =
        service == nil ? [] : [("reported", .bool(loss == nil)), ("failure", loss?.json ?? .null)]
      Console.result(.object([("device", .string(hexadecimal(id))), ("removed", .bool(true))] + told))
    } else {
      Console.result("device \(hexadecimal(id)): no longer enrolled")
    }
  }

  /// Removes the enrolment, and returns the failure if the service could not be told before.
  private func remove(_ id: DeviceID, _ enrolment: Enrolment?) throws(Failure) -> Failure? {
    try writing(state) { (prover) throws(ProverError) -> Failure? in
      guard let service else {
        try prover.unenroll(id, holding: enrolment?.token)
        return nil
      }
      let exchange = calls.exchange(.leave, at: service, state: state, issuer: enrolment?.service)
      guard case .failure(let error) = try prover.leave(id, holding: enrolment?.token, exchange) else { return nil }
      let failure = Failure(exchanging: error, in: state)
      Console.warning(
        "leaving could not be reported (\(failure.code.row.identifier)): \(failure.message); the token is not revoked")
      return failure
    }
  }
}
