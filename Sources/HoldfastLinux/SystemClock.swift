import CHost
import Glibc
import HoldfastCore

/// The kernel's clocks.
///
/// Source: clock_gettime(2).
public struct SystemClock: Clock, Sendable {
  public init() {}

  public func unixSeconds() -> UInt64? {
    UInt64(exactly: read(CLOCK_REALTIME).tv_sec)
  }

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

/// The kernel's random bytes.
///
/// Source: getrandom(2).
public struct SystemRandom: RandomSource, Sendable {
  public init() {}

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
