/// The time of a device without a clock: the last time that it knew, and what has passed since then, within one start.
///
/// It goes back only where the owner lowers the floor, and is never written as a floor: after a start it begins again at what
/// the store knows.
struct RunningTime {
  /// Unix seconds.
  private var time: UInt64 = 0
  /// The earliest that it could be when it was asked for last.
  private var least: UInt64 = 0
  /// When `time` was so, in the milliseconds of the clock that only goes forward.
  private var sinceMilliseconds: UInt64 = 0

  /// Returns the time at `milliseconds`, in Unix seconds; `least` is the earliest that it can be by now.
  mutating func unixSeconds(at milliseconds: UInt64, least: UInt64) -> UInt64 {
    // Whole seconds, by a division of 32 bits: a microcontroller has none of 64. A device asks more often than once a year.
    let elapsed = UInt64(UInt32(truncatingIfNeeded: (milliseconds - sinceMilliseconds) >> 3) / 125)
    time += elapsed
    sinceMilliseconds += elapsed * 1000
    // Only the owner lowers a floor, and then means it.
    if time < least || least < self.least { (time, sinceMilliseconds) = (least, milliseconds) }
    self.least = least
    return time
  }
}

extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// The real clock, in Unix seconds; where there is none, the time that has passed since the device knew it last.
  ///
  /// Everything that asks for the time asks here, but for how far a token's `iat` may be ahead: only a real clock says that.
  package mutating func realClock() throws(StoreFailure) -> UInt64 {
    try realClock(at: clock.monotonicMilliseconds())
  }

  /// The same, where the clock that only goes forward has just been read: `milliseconds`.
  mutating func realClock(at milliseconds: UInt64) throws(StoreFailure) -> UInt64 {
    if let seconds = clock.unixSeconds() { return seconds }
    return running.unixSeconds(at: milliseconds, least: try store.knownTime())
  }

  /// The device's time, in Unix seconds: the later of the clock floor and ``realClock()``.
  mutating func now() throws(StoreFailure) -> UInt64 {
    max(try store.clockFloor(), try realClock())
  }
}
