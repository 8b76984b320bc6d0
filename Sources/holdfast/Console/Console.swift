import Glibc
import HoldfastJSON
import HoldfastText
import Synchronization

/// What a verb prints: results on standard output, everything else on standard error.
///
/// Rules: sentences begin with `holdfast:` and have no full stop; a `hint:` says what to do; warnings begin with `warning:`.
enum Console {
  /// Prints a line of a result, after `mark`, which alone may have colours.
  static func result(_ text: String, after mark: String = "") { writeResult(mark + text.printable + "\n") }

  /// Prints a line of a result whose values were quoted one by one.
  static func result(quoted line: String) { writeResult(line + "\n") }

  /// Prints a result as one JSON object.
  static func result(_ value: JSONValue) {
    writeResult(String(decoding: value.compact(), as: UTF8.self) + "\n")
  }

  /// Prints lines of a result as they are, each with its end.
  static func result(lines: Span<UInt8>) {
    var text: [UInt8] = []
    for index in lines.indices { text.append(lines[index]) }
    let error = write(text[...], to: STDOUT_FILENO)
    if error != 0 { _ = firstLoss.compareExchange(expected: 0, desired: error, ordering: .relaxed) }
  }

  /// Says something beside the result.
  static func note(_ text: String) { _ = write("holdfast: \(text.printable)\n", to: STDERR_FILENO) }

  static func warning(_ text: String) { note("warning: \(text)") }

  /// Reports a failure; `subject` says what failed, where that is one of several things.
  static func report(_ failure: Failure, of subject: String? = nil) {
    note((subject.map { "\($0): " } ?? "") + failure.message)
    if let hint = failure.hint { self.hint(hint) }
  }

  /// Reports a failure, and with `--json` prints it as the result, too.
  static func report(_ failure: Failure, isJSON: Bool) {
    report(failure)
    if isJSON && !failure.hasResult { result(failure.json) }
  }

  static func warnOfSwap() {
    warning("keys may reach the disk: there is swap, and a limit keeps memory from being locked")
    hint("swapoff -a, or give the service LimitMEMLOCK=infinity (ulimit -l unlimited)")
  }

  private static func hint(_ text: String) { _ = write("hint: \(text.printable)\n", to: STDERR_FILENO) }

  /// Whether standard error is a terminal that may be coloured and written over.
  static let isTerminal = isatty(STDERR_FILENO) == 1
  static let isResultTerminal = isatty(STDOUT_FILENO) == 1
  static let hasColour = unsafe isResultTerminal && getenv("NO_COLOR") == nil

  /// Why a result was lost, as an `errno`; 0 when none was.
  static var lostResult: Int32 { firstLoss.load(ordering: .relaxed) }

  private static let firstLoss = Atomic<Int32>(0)

  private static func writeResult(_ text: String) {
    let error = write(text, to: STDOUT_FILENO)
    if error != 0 { _ = firstLoss.compareExchange(expected: 0, desired: error, ordering: .relaxed) }
  }

  /// Writes all of it; what stopped it, as an `errno`, or 0.
  private static func write(_ text: String, to descriptor: Int32) -> Int32 {
    write(Array(text.utf8)[...], to: descriptor)
  }

  /// Writes all of it; what stopped it, as an `errno`, or 0.
  static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int32 {
    var bytes = bytes
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return count < 0 ? errno : EIO }
      bytes = bytes.dropFirst(count)
    }
    return 0
  }
}
