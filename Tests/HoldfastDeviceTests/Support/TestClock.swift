import HoldfastCore
import HoldfastOpenSSL
import Synchronization

/// A clock that stands still until a test moves it, or lets it run.
final class TestClock: Clock, Sendable {
  private let unix = Mutex<UInt64?>(testTime)
  private let milliseconds = Mutex<UInt64>(1_000_000)
  private let isRunning = Atomic(false)
  private let step: UInt64

  /// The monotonic time goes `stepMilliseconds` ahead with every look at it.
  init(stepMilliseconds: UInt64 = 0) {
    step = stepMilliseconds
  }

  /// Unix seconds; nil for a device without a clock.
  var seconds: UInt64? {
    get { unix.withLock { $0 } }
    set { unix.withLock { $0 = newValue } }
  }

  func unixSeconds() -> UInt64? { seconds }

  func monotonicMilliseconds() -> UInt64 {
    if isRunning.load(ordering: .relaxed) { return SystemClock().monotonicMilliseconds() }
    return milliseconds.withLock {
      $0 += step
      return $0
    }
  }

  /// Lets its milliseconds go on with the machine's from now on; its date stands still.
  func run() { isRunning.store(true, ordering: .relaxed) }

  func advance(milliseconds count: UInt64) {
    milliseconds.withLock { $0 += count }
  }
}

/// Bytes that repeat from run to run: never for anything but tests.
struct TestRandom: RandomSource, Sendable {
  var state: UInt64

  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      bytes[index] = UInt8(truncatingIfNeeded: state >> 56)
    }
  }
}

/// The poorest source that there can be: a device must not rest on it.
struct PoorRandom: RandomSource, Sendable {
  /// Not 0, which is no key.
  var byte: UInt8 = 1

  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices { bytes[index] = byte }
  }
}
