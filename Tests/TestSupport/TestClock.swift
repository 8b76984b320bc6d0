import HoldfastCore
import HoldfastLinux
import Synchronization

/// A clock that stands still until a test moves it, or lets it run.
package final class TestClock: Clock, Sendable {
  private let unix: Mutex<UInt64?>
  private let milliseconds = Mutex<UInt64>(1_000_000)
  private let isRunning = Atomic(false)
  private let step: UInt64

  /// Creates a clock whose monotonic time advances by `stepMilliseconds` with every call.
  package init(seconds: UInt64? = testTime, stepMilliseconds: UInt64 = 0) {
    unix = Mutex(seconds)
    step = stepMilliseconds
  }

  /// Unix seconds; nil for a device without a clock.
  package var seconds: UInt64? {
    get { unix.withLock { $0 } }
    set { unix.withLock { $0 = newValue } }
  }

  package func unixSeconds() -> UInt64? { seconds }

  package func monotonicMilliseconds() -> UInt64 {
    if isRunning.load(ordering: .relaxed) { return SystemClock().monotonicMilliseconds() }
    return milliseconds.withLock {
      $0 += step
      return $0
    }
  }

  /// Makes the milliseconds advance with the machine's clock from now on. The date stands still.
  package func run() { isRunning.store(true, ordering: .relaxed) }

  package func advance(milliseconds count: UInt64) {
    milliseconds.withLock { $0 += count }
  }
}
