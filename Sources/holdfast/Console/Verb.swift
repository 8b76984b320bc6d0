import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement

/// A verb (subcommand) of the command line. It throws only a ``Failure``; the extension does the rest.
protocol Verb: ParsableCommand {
  var output: OutputOptions { get }
  /// Whether the exit status is the complete answer, so that it stays valid if the printed result is lost.
  static var isAnsweredByStatus: Bool { get }
  /// Whether this process measures itself.
  static var isMeasuring: Bool { get }
  mutating func perform() throws(Failure)
}

struct OutputOptions: ParsableArguments {
  @Flag(name: .long, help: "Print the result as one JSON object. Commands that serve print one object per line.")
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

  /// Protects the secrets that this process is about to hold from other processes.
  private static func harden() throws(Failure) {
    if isMeasuring { ProcessFiles.keepOpen() }
    guard ProcessHardening.apply() else {
      throw Failure(.fault, "the system does not allow this process to be protected from being read by others")
    }
    // A process that measures itself continues, because the measurement and `explain` show this.
    guard isMeasuring || !ProcessHardening.isStillReadable else {
      throw Failure(
        .fault, "other processes can read this one, although the system confirmed that they cannot",
        hint:
          "the process that starts it probably answers its system calls through a seccomp filter; start it in another way"
      )
    }
  }
}

extension CommandConfiguration {
  /// Creates a verb's configuration whose help page shows examples.
  ///
  /// A test parses each example, so that none uses an option that no longer exists.
  /// - Parameter examples: Command lines for a shell, with `\` at the end of a continued line. Each line has at most 76
  ///   bytes.
  init(
    commandName: String? = nil, abstract: String, usage: String? = nil, discussion: String = "", examples: [String],
    version: String = "",
    subcommands: [any ParsableCommand.Type] = [], defaultSubcommand: (any ParsableCommand.Type)? = nil
  ) {
    let lines = examples.map { "  \($0.split(separator: "\n").joined(separator: "\n      "))" }
    let shown = "EXAMPLES:\n\(lines.joined(separator: "\n"))"
    self.init(
      commandName: commandName, abstract: abstract, usage: usage,
      discussion: discussion.isEmpty ? shown : "\(discussion)\n\n\(shown)",
      version: version, subcommands: subcommands, defaultSubcommand: defaultSubcommand)
  }
}

/// The exit status of a run, as `holdfast --help` explains it. It is 0 if and only if the whole operation succeeded.
package enum ExitStatus: Int32 {
  case denied = 1
  case malformed = 2
  case impostor = 3
  case usage = 64
  case unavailable = 69
  case fault = 70
  case noPermission = 77
}

/// The time limit for the other end.
struct TimeoutOptions: ParsableArguments {
  @Option(help: "Seconds to wait for the device, 1 to 3600.")
  var timeout: Int = 10

  /// Returns the time in milliseconds.
  func milliseconds() throws(Failure) -> Int {
    guard (1...3600).contains(timeout) else { throw Failure(.usage, "--timeout must be from 1 to 3600 seconds") }
    return timeout * 1000
  }
}

extension Timestamp {
  /// Parses a time of the command line: an RFC 3339 date with a time of day, or Unix seconds.
  ///
  /// - Parameters:
  ///   - option: The option with the time, for the message.
  ///   - word: Another value that the option accepts.
  /// - Throws: `usage` for anything else and for a time after 2^53 - 1 seconds.
  init(argument text: String, of option: String, orElse word: String? = nil) throws(Failure) {
    if let time = Timestamp(parsing: text) {
      self = time
    } else if let seconds = decimal(text), seconds <= maximumInteger {
      self.init(unixSeconds: seconds)
    } else {
      throw Failure(
        .usage,
        "\(option) must be a time such as 2026-11-22T18:00:00Z, or Unix seconds\(word.map { ", or \($0)" } ?? "")",
        hint: "date --utc +%FT%TZ prints the current time, and date +%s prints it in seconds")
    }
  }
}
