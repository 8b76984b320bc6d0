import ArgumentParser
import Glibc
import HoldfastCharts
import HoldfastLinux

/// The option for a picture of the result.
struct PictureOptions: ParsableArguments {
  @Option(help: "The file for a picture of the result, in SVG.", completion: .file(extensions: ["svg"]))
  var svg: String?

  /// Checks that the picture can be written, before a benchmark that takes long.
  func check() throws(Failure) {
    guard let svg else { return }
    guard !svg.isEmpty else { throw Failure(.usage, "--svg must be the name of a file") }
    var status = stat()
    if unsafe stat(svg, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
      throw Failure(FileError(.isDirectory, at: svg))
    }
    let folder = svg.lastIndex(of: "/").map { $0 == svg.startIndex ? "/" : String(svg[..<$0]) } ?? "."
    guard unsafe access(folder, W_OK | X_OK) != 0 else { return }
    throw Failure(FileError(FileError.Kind(errno), at: folder))
  }

  /// Writes the picture, if there is to be one. `text` returns its SVG.
  func write(_ text: () -> String) throws(Failure) {
    guard let svg else { return }
    do throws(FileError) {
      try Files.writeFileAtomically(Array(text().utf8).span, at: svg, mode: 0o644, overwrite: true)
    } catch { throw Failure(error).afterResult() }
  }
}

/// The option for the budget line of a picture, for benchmarks that no budget makes fail.
struct DrawnBudget: ParsableArguments {
  @Option(help: "The budget that the picture shows, in milliseconds.")
  var budgetMs: Int = 100

  /// Checks the range.
  func check() throws(Failure) { try Self.check(budgetMs) }

  /// Checks the range of a budget in milliseconds.
  static func check(_ budgetMs: Int) throws(Failure) {
    guard (1...3_600_000).contains(budgetMs) else { throw Failure(.usage, "--budget-ms must be from 1 to 3600000") }
  }
}

/// The progress of a benchmark on a terminal: at most one line a second, from the first second on.
package struct BenchProgress {
  private let unit: String
  private let count: Int
  private let start = monotonicNanoseconds()
  private var shown = monotonicNanoseconds()

  /// Begins to count. `unit` is a plural, such as "proofs".
  init(_ unit: String, of count: Int) { (self.unit, self.count) = (unit, count) }

  /// Shows that `done` of them are done, if it is time to.
  mutating func step(_ done: Int) {
    let now = monotonicNanoseconds()
    guard Console.isTerminal, done > 0, done < count, now - shown >= 1_000_000_000 else { return }
    shown = now
    Console.note(Self.text(unit, done, of: count, nanoseconds: now - start))
  }

  /// The line for a number of steps and the time that they took.
  package static func text(_ unit: String, _ done: Int, of count: Int, nanoseconds: UInt64) -> String {
    let left = Double(nanoseconds) / Double(done) * Double(count - done) / 1e9
    return "\(done) of \(count) \(unit), about \(NumberText.of(max(left.rounded(), 1), "s")) left"
  }
}
