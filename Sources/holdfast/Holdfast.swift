import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastVersion

@main
package struct Holdfast: ParsableCommand {
  package init() {}

  package static let configuration = CommandConfiguration(
    commandName: "holdfast",
    abstract: "Offline hardware attestation for embedded verifiers.",
    discussion: """
      Holdfast lets a device without Internet access (a lock, a charger, a pump) decide whether the app that commands it \
      is unmodified and runs on the host that a backend approved earlier. In these pages, the device is the embedded \
      verifier; the prover is the app, and its machine is the host.

      Exit status: 0 the whole operation succeeded, 1 denied, 2 malformed input or failed check, 3 the other end did not \
      prove its identity, 64 wrong usage, 69 peer not available, 70 a fault of this host (its disk is full or read-only, or \
      a library failed), 77 no permission. Ctrl-C and SIGTERM end a command by that signal, which a shell shows as 130 and \
      143. Commands that serve or scan finish first and exit with 0; bench removes its folder first and exits with 69. Each \
      failure and warning has a number: holdfast help errors lists them.

      Environment: XDG_DATA_HOME or HOME determines where this host's secret for measurements is kept: in \
      holdfast/device.secret below $XDG_DATA_HOME or $HOME/.local/share. TMPDIR is the folder in which bench creates \
      its own. NO_COLOR turns colours off.
      """,
    examples: [
      "holdfast service init --dir service",
      "holdfast device init --dir lock",
      "holdfast prove --connect unix:/run/lock.sock --state phone --command unlock",
      "holdfast help prove",
      "holdfast help errors",
    ],
    version: versionText,
    subcommands: [
      Device.self, Service.self, Enroll.self, Measure.self, Attest.self, Issue.self, Accept.self, Prove.self,
      ShowProof.self, ShowStatus.self, ShowSettings.self, Explain.self, PostureVerb.self, Sync.self, Unenroll.self,
      ProofKeyFiles.self, OTP.self, Seal.self, VaultVerbs.self, AgentVerb.self, Wipe.self, Scan.self, Doctor.self,
      Vectors.self, AttackVerb.self, Bench.self, Endpoints.self,
    ]
  )

  private static let versionText = "holdfast \(HoldfastVersion.description), protocol \(Message.version)"

  package static func main() {
    StandardStreams.prepare()
    let arguments: Arguments
    do throws(Failure) { arguments = try Arguments.ofProcess() } catch {
      end(by: error, isJSON: CommandLine.arguments.contains("--json"))
    }
    // The parser's own `help` ignores words that are not verbs, and shows the page of the verbs before them.
    if arguments.words == ["help", "errors"] || arguments.words == ["help", "errors", "--json"]
      || arguments.words == ["help", "--json", "errors"]
    {
      FailureTable.print(isJSON: arguments.isMarkedJSON)
      return
    }
    if arguments.words.first == "help", let mistake = TypingError(in: arguments.words)?.failure {
      end(by: mistake, isJSON: arguments.isMarkedJSON)
    }
    do {
      var command = try parseAsRoot(arguments.words)
      if let mistake = TypingError(repetitionIn: arguments.words)?.failure {
        end(by: mistake, isJSON: arguments.isMarkedJSON)
      }
      try command.run()
    } catch let status as ExitCode {
      exit(withError: status)
    } catch {
      guard let mistake = Failure(parsing: error, of: arguments) else {
        if arguments.isMarkedJSON, message(for: error) == versionText {
          Console.result(
            .object([
              ("version", .string(HoldfastVersion.description)), ("protocol", .integer(Message.version)),
            ]))
          return
        }
        exit(withError: error)
      }
      end(by: mistake, isJSON: arguments.isMarkedJSON)
    }
  }

  private static func end(by failure: Failure, isJSON: Bool) -> Never {
    Console.report(failure, isJSON: isJSON)
    exit(withError: ExitCode(failure.status.rawValue))
  }
}
