import Glibc
import HoldfastCore
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport

// An app for a technician in the field: one button that has a device carry out a command.
//
//   FieldApp measure FILE            takes a baseline, and writes the evidence that the backend exchanges for a token
//   FieldApp press COMMAND ENDPOINT  proves to the device, and has it carry out the command
//   FieldApp explain                 prints the components that have changed since the baseline

@main
struct FieldApp {
  /// The state is kept in the folder `phone`. The keys are those of `mpk.key` in this package.
  static let prover = Prover(state: "phone", keys: .app)

  static func main() throws {
    let words = CommandLine.arguments.dropFirst()
    switch (words.first, words.count) {
    case ("measure", 2): try measure(into: words[2])
    case ("press", 3): try press(words[2], at: words[3])
    case ("explain", 1): try explain()
    default: print("usage: FieldApp measure FILE | press COMMAND ENDPOINT | explain")
    }
  }

  static func measure(into path: String) throws {
    let evidence = try prover.begin(replacing: true).evidence
    // Anyone who reads the evidence knows the measurements.
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard write(file, evidence, evidence.count) == evidence.count, close(file) == 0 else {
      return print("\(path) cannot be written")
    }
  }

  static func press(_ command: String, at endpoint: String) throws {
    guard let command = BoundedText<32>(command) else { return print("the command is too long") }
    let outcome = try prover.prove(Request(command: command), at: Endpoint(parsing: endpoint))
    print(outcome.verdict.status, String(decoding: outcome.result, as: UTF8.self))
  }

  static func explain() throws {
    for (_, changes) in try prover.explain() {
      for entry in changes.entries where entry.state != .unchanged { print(entry.id) }
    }
  }
}
