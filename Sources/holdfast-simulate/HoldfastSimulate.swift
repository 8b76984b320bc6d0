import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastSimulation
import HoldfastVersion

/// The simulation of a fleet whose provers carry bulletins.
@main
struct HoldfastSimulate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast-simulate",
    abstract: "Simulate a fleet of devices without a network, whose provers carry bulletins.",
    discussion: """
      It says how long it takes until devices know of a revocation, and what bulletins cost at a visit.

      Real are the online service (it enrols provers, revokes their tokens, and signs, merges and answers with bulletins), the \
      courier's decisions (what it fetches, asks for and delivers), each message about bulletins, and the device's decision with \
      its check of the signature and its ledger, in a database in memory. Not run, but counted by their encoders, are M1 to M3 \
      of the rounds. Time is virtual, and there are no sockets. All devices are one group, and have no clocks.

      Exit status: 0 the simulation ended, and its rules held; 1 a forged bulletin was taken, or a visit at which there was \
      nothing to say cost a check of a signature or more than 12 bytes; 64 wrong usage or a wrong file; 70 a fault of this host.

      EXAMPLES:
        holdfast-simulate --devices 1000 --provers 100
        holdfast-simulate --devices 100000 --provers 10000 --svg reach.svg
        holdfast-simulate --devices 2 --provers 1 --pattern visits.csv --json
      """,
    version: HoldfastVersion.description)

  @Option(help: "The number of devices, 1 to 1000000.") var devices = 1000
  @Option(help: "The number of provers, 1 to 1000000.") var provers = 100
  @Option(help: "The number of provers that visit a device, 1 to 1000.") var proversPerDevice = 8
  @Option(help: "The mean number of visits to a device a day, 0.0001 to 1000 (default: 2).") var visitsPerDay: Double?
  @Option(
    help: "The exponent of Zipf's law for the popularity of devices, 0 to 4; with 0, all are equal (default: 1).")
  var zipf: Double?
  @Option(
    help: "A file with the visits, in place of random ones: the line seconds,prover,device, and a line for each visit.")
  var pattern: String?
  @Option(help: "The hours between two times at which a prover fetches bulletins, 0.02 to 8784.") var syncHours = 24.0
  @Option(help: "The number of revocations, spread evenly over the first half of the days, 1 to 10000 (default: 1).")
  var revocations: Int?
  @Option(help: "The second at which a token is revoked; may be repeated.") var revokeAt: [UInt64] = []
  @Option(help: "The days for which a revoked token would have been valid, 1 to 3660.") var validityDays: UInt64 = 90
  @Option(help: "The share of provers that never fetch bulletins, 0 to 1.") var lost = 0.0
  @Option(
    help: "The share of provers that forge, replay or cut bulletins, flood devices or keep bulletins back, 0 to 1.")
  var malicious = 0.0
  @Option(help: "The days that are simulated, 1 to 366.") var days: UInt64 = 30
  @Option(help: "The seed of all random choices.") var seed: UInt64 = 1
  @Flag(help: "Print the result as one JSON object.") var json = false
  @Option(help: "A file for a picture of the share of devices that know, over the time.") var svg: String?

  mutating func run() throws {
    let settings = try self.settings()
    let report: SimulationReport
    do {
      var simulation = try Simulation(settings)
      report = try simulation.run(progress: Progress.show)
      Progress.clear()
    } catch let mistake as SimulationMistake {
      throw Refusal(MistakeText.of(mistake))
    }
    if let svg { try write(ReachChart(report).svg, to: svg) }
    let text = json ? String(decoding: report.json.pretty(), as: UTF8.self) : report.text
    print(text, terminator: text.hasSuffix("\n") ? "" : "\n")
    guard fflush(nil) == 0 else {
      throw Refusal("the result could not be written", status: 70)
    }
    guard report.isSound else {
      throw Refusal("a rule did not hold: a forged bulletin was taken, or nothing to say cost too much", status: 1)
    }
  }

  private func settings() throws -> SimulationSettings {
    guard pattern == nil || (visitsPerDay == nil && zipf == nil) else {
      throw Refusal("--pattern names all visits, and cannot be used with --visits-per-day or --zipf")
    }
    guard revokeAt.isEmpty || revocations == nil else {
      throw Refusal("--revoke-at and --revocations cannot be used together")
    }
    var settings = SimulationSettings()
    (settings.deviceCount, settings.proverCount, settings.proversPerDevice) = (devices, provers, proversPerDevice)
    (settings.days, settings.validityDays, settings.seed) = (days, validityDays, seed)
    (settings.lostShare, settings.maliciousShare) = (lost, malicious)
    guard (0.02...8784).contains(syncHours) else { throw Refusal("--sync-hours must be from 0.02 to 8784") }
    settings.syncSeconds = UInt64((syncHours * 3600).rounded())
    let count = revocations ?? 1
    guard SimulationQuantity.revocations.range.contains(count),
      SimulationQuantity.days.range.contains(Int(clamping: days))
    else {
      throw Refusal(
        MistakeText.of(
          .outOfRange(SimulationQuantity.revocations.range.contains(count) ? .days : .revocations)))
    }
    settings.revocations = revokeAt.isEmpty ? SimulationSettings.spread(count, over: days) : revokeAt
    settings.visits = .drawn(perDay: visitsPerDay ?? 2, zipf: zipf ?? 1)
    do throws(SimulationMistake) { try settings.check() } catch { throw Refusal(MistakeText.of(error)) }
    if let pattern { settings.visits = .listed(try visits(in: pattern, settings)) }
    return settings
  }

  private func visits(in path: String, _ settings: SimulationSettings) throws -> [SimulatedVisit] {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: path, limit: VisitPattern.byteLimit) } catch {
      throw Refusal("the file of --pattern cannot be read, or has more than 256 MiB")
    }
    do throws(PatternMistake) {
      return try VisitPattern.visits(
        in: bytes, proverCount: settings.proverCount, deviceCount: settings.deviceCount, duration: settings.duration)
    } catch { throw Refusal(MistakeText.of(error)) }
  }

  private func write(_ text: String, to path: String) throws {
    do throws(FileError) {
      try Files.writeFileAtomically(Array(text.utf8), at: path, mode: 0o644, overwrite: true)
    } catch { throw Refusal("the file of --svg cannot be written", status: 70) }
  }

  static func main() {
    do {
      var command = try parse()
      try command.run()
    } catch let refusal as Refusal {
      Progress.clear()
      fail(refusal.message, refusal.status)
    } catch {
      Progress.clear()
      guard exitCode(for: error) != .success else { exit(withError: error) }
      guard exitCode(for: error) == .validationFailure else { fail("a fault of this host: \(error)", 70) }
      fail(message(for: error), ExitCode.validationFailure.rawValue)
    }
  }

  private static func fail(_ message: String, _ status: Int32) -> Never {
    let line = message.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    StandardError.write("holdfast-simulate: \(line.hasPrefix("Error: ") ? String(line.dropFirst(7)) : line)\n")
    exit(withError: ExitCode(status))
  }
}

/// An unsuccessful end: a sentence, and the exit status.
struct Refusal: Error {
  let message: String
  let status: Int32

  init(_ message: String, status: Int32 = ExitCode.validationFailure.rawValue) {
    (self.message, self.status) = (message, status)
  }
}

/// The share of the time that has passed, on a terminal.
enum Progress {
  private static let isShown = isatty(STDERR_FILENO) == 1

  static func show(_ share: Double) {
    guard isShown else { return }
    StandardError.write("\r\(Int(share * 100)) % ")
  }

  static func clear() {
    guard isShown else { return }
    StandardError.write("\r\u{1b}[K")
  }
}

/// The stream for people.
enum StandardError {
  static func write(_ text: String) {
    let bytes = Array(text.utf8)
    unsafe bytes.withUnsafeBytes { bytes in _ = unsafe Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  }
}
