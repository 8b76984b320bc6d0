/// The times at which provers fetch bulletins: each does so once in every period, at its own moment of the period.
struct SyncTimes {
  private let period: UInt64
  private let seed: UInt64
  /// The moments of all provers that fetch bulletins, ascending.
  private let moments: [UInt64]

  init(_ settings: SimulationSettings, roles: [CourierRole]) {
    let (period, seed) = (settings.syncSeconds, settings.seed)
    (self.period, self.seed) = (period, seed)
    moments = roles.indices.filter { roles[$0] != .lost }.map { Self.moment(of: $0, period, seed) }.sorted()
  }

  private static func moment(of prover: Int, _ period: UInt64, _ seed: UInt64) -> UInt64 {
    var random = SeededRandom(seed: seed, stream: 2 << 32 + UInt64(prover))
    return UInt64(random.index(below: Int(period)))
  }

  /// Returns the time at which a prover fetched bulletins last; nil if it has not yet.
  func last(of prover: Int, before second: UInt64) -> UInt64? {
    let moment = Self.moment(of: prover, period, seed)
    guard second >= moment else { return nil }
    return moment + (second - moment) / period * period
  }

  /// Returns the first time from `second` on at which any prover fetches bulletins; nil if none ever does.
  func next(from second: UInt64) -> UInt64? {
    guard let first = moments.first else { return nil }
    let (start, rest) = (second - second % period, second % period)
    var (low, high) = (0, moments.count)
    while low < high {
      let middle = (low + high) / 2
      if moments[middle] >= rest { high = middle } else { low = middle + 1 }
    }
    return low < moments.count ? start + moments[low] : start + period + first
  }

  /// Returns when the service signs bulletins, and how many revocations it has signed then. It does so when a prover asks, and
  /// `pause` seconds or more after the bulletin before.
  ///
  /// - Parameters:
  ///   - revocations: the times of the revocations, ascending.
  ///   - pause: the seconds between two bulletins.
  ///   - duration: the end of the simulation.
  func signings(of revocations: [UInt64], pause: UInt64, duration: UInt64) -> [(second: UInt64, count: Int)] {
    var signings: [(second: UInt64, count: Int)] = []
    var count = 0
    while count < revocations.count {
      let earliest = max(revocations[count], signings.last.map { $0.second + pause } ?? 0)
      guard let second = next(from: earliest), second < duration else { break }
      while count < revocations.count, revocations[count] <= second { count += 1 }
      signings.append((second, count))
    }
    return signings
  }
}
