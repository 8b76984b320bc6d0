/// Slows a connection whose proofs keep failing: never locks anybody out, since anybody can send wrong ones.
///
/// Source: docs/protocol.md, Once is once: from the 10th failure in a minute on, each answer waits a second.
struct FailureWindow {
  private static let windowMilliseconds: UInt64 = 60_000
  private var times = InlineArray<10, UInt64>(repeating: 0)
  private var count = 0

  mutating func record(at milliseconds: UInt64) {
    times[count % times.count] = milliseconds
    count += 1
  }

  /// How long an answer at `milliseconds` has to wait.
  func delayMilliseconds(at milliseconds: UInt64) -> UInt64 {
    guard count >= times.count else { return 0 }
    let oldest = times[count % times.count]
    return milliseconds - oldest < Self.windowMilliseconds ? 1000 : 0
  }
}
