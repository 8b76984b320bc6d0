import CHost
import Glibc
import HoldfastCore

/// A clock that reads the kernel's clocks.
///
/// Source: clock_gettime(2).
public struct SystemClock: Clock, Sendable {
  /// Creates the clock.
  public init() {}

  /// Returns the seconds of `CLOCK_REALTIME` since 1970-01-01T00:00:00Z; nil for an earlier time.
  public func unixSeconds() -> UInt64? {
    UInt64(exactly: read(CLOCK_REALTIME).tv_sec)
  }

  /// Returns the milliseconds of `CLOCK_MONOTONIC`, which counts from the start of the machine.
  public func monotonicMilliseconds() -> UInt64 {
    let time = read(CLOCK_MONOTONIC)
    return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
  }

  private func read(_ clock: clockid_t) -> timespec {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return time
  }
}

/// A source of random bytes from the kernel.
///
/// Source: getrandom(2).
public struct SystemRandom: RandomSource, Sendable {
  /// Creates the source.
  public init() {}

  /// Fills `bytes` with random bytes; waits until the kernel's generator has been seeded.
  ///
  /// - Throws: `RandomFailure` if the kernel returns an error.
  public mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    var filled = 0
    while filled < bytes.count {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe getrandom(buffer.baseAddress! + filled, buffer.count - filled, 0)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw RandomFailure() }
      filled += count
    }
  }
}
