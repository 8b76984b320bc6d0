import ArgumentParser
import HoldfastJSON

/// One verb of the command line. It throws a ``Failure`` and nothing else; the rest is done here.
protocol Verb: ParsableCommand {
  var output: OutputOptions { get }
  mutating func perform() throws(Failure)
}

struct OutputOptions: ParsableArguments {
  @Flag(name: .long, help: "Print the result as one JSON object.")
  var json = false
}

extension Verb {
  mutating func run() throws {
    do throws(Failure) {
      try perform()
    } catch {
      Console.report(error)
      if output.json && !error.hasResult {
        Console.result(.object([("error", .string(error.message)), ("exit", .integer(UInt64(error.status.rawValue)))]))
      }
      throw ExitCode(error.status.rawValue)
    }
  }
}
