import Glibc
import HoldfastCore
import Synchronization

/// A clock that says nothing after the system's clock was set by more than five minutes, in either direction.
///
/// A program that decides by time must not go on as if a revoked or expired thing were valid again, nor date what it signs into
/// the future. The clock continues once it is set back, and accepts the new time in the next process.
package final class SteadyClock: Clock, Sendable {
  /// The largest change that is accepted, in seconds.
  package static let toleranceSeconds: Int64 = 300

  private let base: any Clock & Sendable
  private let secondsSinceStart: @Sendable () -> Int64
  /// The difference of both clocks at the last accepted reading.
  private let difference: Atomic<Int64>

  /// Creates a clock.
  ///
  /// - Parameters:
  ///   - base: The system's clock.
  ///   - secondsSinceStart: The time since the start of the machine, which nobody can set. It counts while the machine sleeps.
  package init(
    _ base: any Clock & Sendable = SystemClock(),
    secondsSinceStart: @escaping @Sendable () -> Int64 = SteadyClock.bootSeconds
  ) {
    self.base = base
    self.secondsSinceStart = secondsSinceStart
    difference = Atomic(Int64(clamping: base.unixSeconds() ?? 0) - secondsSinceStart())
  }

  /// Returns Unix seconds; nil if the system has no time, or it was set.
  package func unixSeconds() -> UInt64? {
    guard let now = base.unixSeconds() else { return nil }
    let found = Int64(clamping: now) - secondsSinceStart()
    let expected = difference.load(ordering: .relaxed)
    guard abs(found - expected) <= Self.toleranceSeconds else { return nil }
    // Small corrections add up.
    if found != expected { difference.store(found, ordering: .relaxed) }
    return now
  }

  package func monotonicMilliseconds() -> UInt64 { base.monotonicMilliseconds() }

  /// The seconds of `CLOCK_BOOTTIME`.
  package static let bootSeconds: @Sendable () -> Int64 = {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec)
  }
}
