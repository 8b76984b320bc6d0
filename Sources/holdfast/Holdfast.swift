import ArgumentParser

@main
struct Holdfast: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast",
    abstract: "Offline hardware attestation for embedded verifiers.",
    discussion: """
      A device without Internet decides whether it is commanded by the same untampered software, on the same device, that \
      a backend approved earlier.

      Exit status: 0 the whole operation succeeded, 1 denied, 2 malformed input or failed check, 3 the other end did not \
      prove who it is, 64 usage, 69 peer not available, 70 internal fault, 77 no permission.
      """,
    subcommands: [
      Demo.self, Device.self, Service.self, Enroll.self, Measure.self, Attest.self, Issue.self, Prove.self,
      Explain.self, OTP.self, Seal.self, Scan.self, Doctor.self, Vectors.self, Bench.self,
    ]
  )

  static func main() {
    StandardStreams.prepare()
    do {
      var command = try parseAsRoot()
      try command.run()
    } catch let status as ExitCode {
      exit(withError: status)
    } catch {
      guard let mistake = Failure(parsing: error) else { exit(withError: error) }
      Console.report(mistake)
      exit(withError: ExitCode(mistake.status.rawValue))
    }
  }
}
