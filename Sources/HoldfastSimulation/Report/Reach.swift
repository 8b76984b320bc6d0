/// The times at which devices learn of revocations.
package struct Reach {
  /// The shares of devices of which the time is told.
  static let shares = [0.5, 0.99, 0.999]

  private let deviceCount: Int
  private let revocations: [UInt64]
  /// The numbers of devices that know, by revocation.
  private var counts: [Int]
  /// The times, by revocation, at which each share of the devices was reached, in seconds after the revocation.
  private var reached: [[UInt64?]]
  /// The number of times that a device learnt of a revocation, by the seconds after it.
  private var delays: [UInt32]

  /// Creates the record of a fleet in which nobody knows anything.
  ///
  /// - Parameters:
  ///   - deviceCount: the number of devices.
  ///   - revocations: the times of the revocations.
  ///   - duration: the end of the simulation, which is after all of them.
  package init(deviceCount: Int, revocations: [UInt64], duration: UInt64) {
    (self.deviceCount, self.revocations) = (deviceCount, revocations)
    counts = [Int](repeating: 0, count: revocations.count)
    reached = [[UInt64?]](repeating: [nil, nil, nil], count: revocations.count)
    delays = [UInt32](repeating: 0, count: Int(duration))
  }

  /// Takes note that one more device knows of a revocation. The times rise from call to call.
  package mutating func note(_ revocation: Int, at second: UInt64) {
    let delay = second - revocations[revocation]
    delays[Int(delay)] += 1
    counts[revocation] += 1
    for (index, share) in Self.shares.enumerated() where counts[revocation] == share.leastCount(of: deviceCount) {
      reached[revocation][index] = delay
    }
  }

  /// The figures of each revocation.
  package var each: [ReachFigures] {
    revocations.indices.map { index in
      ReachFigures(
        revoked: revocations[index], seconds: reached[index], share: Double(counts[index]) / Double(deviceCount))
    }
  }

  /// The figures of all pairs of a device and a revocation.
  package var all: ReachFigures {
    let pairCount = deviceCount * revocations.count
    let targets = Self.shares.map { $0.leastCount(of: pairCount) }
    var seconds = Self.shares.map { _ in UInt64?.none }
    var count = 0
    for (delay, number) in delays.enumerated() where number > 0 {
      count += Int(number)
      for index in targets.indices where seconds[index] == nil && count >= targets[index] {
        seconds[index] = UInt64(delay)
      }
    }
    return ReachFigures(revoked: nil, seconds: seconds, share: Double(count) / Double(pairCount))
  }

  /// The points of the curve of the share that knows over the time, in hours after the revocation: at most 400.
  var curve: [(hours: Double, share: Double)] {
    let end = (delays.lastIndex { $0 > 0 } ?? 0) + 1
    let step = max((end + 399) / 400, 1)
    var (points, count): ([(hours: Double, share: Double)], Int) = ([(0, 0)], 0)
    for start in stride(from: 0, to: end, by: step) {
      let stop = min(start + step, end)
      count += delays[start..<stop].reduce(0) { $0 + Int($1) }
      points.append((Double(stop) / 3600, Double(count) / Double(deviceCount * revocations.count)))
    }
    return points
  }
}

/// The time until devices knew of a revocation.
package struct ReachFigures: Sendable, Equatable {
  /// The time of the revocation, in seconds from the beginning; nil for all revocations.
  package let revoked: UInt64?
  /// The seconds after the revocation until 50, 99 and 99.9 % of the devices knew; nil where they never did.
  package let seconds: [UInt64?]
  /// The share of the devices that knew at the end.
  package let share: Double

  /// Creates figures from their parts.
  package init(revoked: UInt64?, seconds: [UInt64?], share: Double) {
    (self.revoked, self.seconds, self.share) = (revoked, seconds, share)
  }
}
