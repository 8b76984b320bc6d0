/// The order in which services are tried: each at once, in the order of the list; one that failed again after a pause.
///
/// The pause grows from 0.25 s to 8 s with each failure of that service in a row, with full jitter: a random time from nothing
/// to that. If the service names a longer one, that one counts.
struct Rotation {
  private struct Place {
    var failureCount = 0
    /// The moment before which the service is left alone, in monotonic milliseconds.
    var notBefore: UInt64 = 0
  }

  private var places: [Place]

  static let leastMilliseconds: UInt64 = 250
  static let greatestMilliseconds: UInt64 = 8000
  /// The longest pause that a service may name, in seconds.
  static let greatestRetryAfterSeconds: UInt64 = 3600

  init(count: Int) { places = Array(repeating: Place(), count: count) }

  /// Returns the service to try next and the moment from which it may be tried: the one with the fewest failures among those
  /// that are ready, else the first that becomes ready.
  ///
  /// - Parameter preferred: the service that comes first among those with equally many failures.
  func next(now: UInt64, preferring preferred: Int? = nil) -> (index: Int, moment: UInt64) {
    func precedes(_ left: Int, _ right: Int) -> Bool {
      let (first, second) = (places[left], places[right])
      let (isFirstReady, isSecondReady) = (first.notBefore <= now, second.notBefore <= now)
      if isFirstReady != isSecondReady { return isFirstReady }
      if !isFirstReady, first.notBefore != second.notBefore { return first.notBefore < second.notBefore }
      if first.failureCount != second.failureCount { return first.failureCount < second.failureCount }
      return left == preferred && right != preferred || right != preferred && left < right
    }
    let index = places.indices.min(by: precedes) ?? 0
    return (index, max(now, places[index].notBefore))
  }

  /// Records an answer of a service.
  mutating func succeeded(_ index: Int) { places[index] = Place() }

  /// Returns the longest pause after the next failure of a service, in milliseconds.
  func greatestPause(_ index: Int) -> UInt64 {
    min(Self.leastMilliseconds << min(places[index].failureCount, 5), Self.greatestMilliseconds)
  }

  /// Records a failure of a service.
  ///
  /// - Parameter pause: a random time up to ``greatestPause(_:)``.
  mutating func failed(_ index: Int, now: UInt64, pause: UInt64, retryAfterSeconds: UInt64?) {
    places[index].failureCount += 1
    places[index].notBefore = now + max(pause, min(retryAfterSeconds ?? 0, Self.greatestRetryAfterSeconds) * 1000)
  }
}
