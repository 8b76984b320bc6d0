import CHost
import Glibc
import HoldfastCore

/// The kernel's clocks.
///
/// Source: clock_gettime(2).
package struct SystemClock: Clock, Sendable {
  package init() {}

  package func unixSeconds() -> UInt64? {
    UInt64(exactly: read(CLOCK_REALTIME).tv_sec)
  }

  package func monotonicMilliseconds() -> UInt64 {
    let time = read(CLOCK_MONOTONIC)
    return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
  }

  private func read(_ clock: clockid_t) -> timespec {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return time
  }
}

/// The kernel's random bytes.
///
/// Source: getrandom(2).
package struct SystemRandom: RandomSource, Sendable {
  package init() {}

  package mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
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
