import ArgumentParser
import HoldfastHardening
import HoldfastJSON
import HoldfastMeasurement

/// One verb of the command line. It throws a ``Failure`` and nothing else; the rest is done here.
protocol Verb: ParsableCommand {
  var output: OutputOptions { get }
  /// Whether the exit status alone is the answer, so that it stands even where the printed result is lost.
  static var isAnsweredByStatus: Bool { get }
  /// Whether this process measures itself.
  static var isMeasuring: Bool { get }
  mutating func perform() throws(Failure)
}

struct OutputOptions: ParsableArguments {
  @Flag(name: .long, help: "Print the result as one JSON object; a verb that serves prints one object a line.")
  var json = false
}

extension Verb {
  static var isAnsweredByStatus: Bool { false }
  static var isMeasuring: Bool { false }

  mutating func run() throws {
    do throws(Failure) {
      try Self.harden()
      try perform()
      if let loss = Failure(lostResult: Console.lostResult) {
        guard Self.isAnsweredByStatus else { throw loss.afterResult() }
        Console.warning(loss.message)
      }
    } catch {
      Console.report(error, isJSON: output.json)
      throw ExitCode(error.status.rawValue)
    }
  }

  /// Keeps other processes from the secrets that come now.
  private static func harden() throws(Failure) {
    if isMeasuring { ProcessFiles.keepOpen() }
    guard ProcessHardening.apply() else {
      throw Failure(.fault, "the system does not let this process be kept from being read by others")
    }
    // One that measures itself goes on: the measurement shows it, and explain names it.
    guard isMeasuring || !ProcessHardening.isStillReadable else {
      throw Failure(
        .fault, "this process can be read by others, though the system said that it cannot",
        hint: "what starts it answers its system calls by a seccomp filter; start it in another way")
    }
  }
}
