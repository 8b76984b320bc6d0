import Glibc
import HoldfastOpenSSL

/// How long what was shown is valid still, counted down on a terminal in one line.
enum Countdown {
  /// Nobody waits longer than this.
  private static let maximumSeconds: UInt64 = 300

  /// Runs until nothing is left, or until the user breaks it off. Does nothing without a terminal.
  static func run(_ seconds: UInt64?) {
    guard let seconds, Console.isTerminal, Console.isResultTerminal else { return }
    guard seconds <= maximumSeconds else {
      Console.note("valid for \(seconds) seconds")
      return
    }
    let clock = SystemClock()
    let start = clock.monotonicMilliseconds()
    while true {
      let passed = (clock.monotonicMilliseconds() - start) / 1000
      guard passed < seconds else { break }
      write("\rvalid for \(seconds - passed) s \u{1b}[K")
      let next = start + (passed + 1) * 1000
      _ = poll(nil, 0, Int32(next - min(next, clock.monotonicMilliseconds())) + 1)
    }
    write("\rexpired\u{1b}[K\n")
  }

  private static func write(_ text: String) { _ = Console.write(Array(text.utf8)[...], to: STDERR_FILENO) }
}
