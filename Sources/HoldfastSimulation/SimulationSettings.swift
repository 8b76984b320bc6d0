/// The fleet that is simulated, its provers and what happens to them. Times are virtual, in seconds from the beginning.
package struct SimulationSettings: Sendable {
  /// The number of devices, which are one group.
  package var deviceCount = 1000
  /// The number of provers.
  package var proverCount = 100
  /// The number of provers that visit a device.
  package var proversPerDevice = 8
  /// The visits.
  package var visits = VisitPlan.drawn(perDay: 2, zipf: 1)
  /// The seconds between two times at which a prover fetches bulletins.
  package var syncSeconds: UInt64 = 86_400
  /// The times at which tokens are revoked, in any order.
  package var revocations = [UInt64](repeating: 0, count: 1)
  /// The share of provers that never fetch bulletins, and so deliver none. Their visits go on.
  package var lostShare = 0.0
  /// The share of provers that deliver what no device may take, or nothing.
  package var maliciousShare = 0.0
  /// The length of the simulation, in days.
  package var days: UInt64 = 30
  /// The days for which a token is still valid when it is revoked.
  package var validityDays: UInt64 = 90
  /// The seed of all random choices.
  package var seed: UInt64 = 1

  /// Creates the default settings.
  package init() {}

  /// The length of the simulation, in seconds.
  package var duration: UInt64 { days * 86_400 }

  /// Returns the times of `count` revocations that are spread evenly over the first half of the simulation, so that the last one has
  /// time to spread, too.
  package static func spread(_ count: Int, over days: UInt64) -> [UInt64] {
    (0..<UInt64(count)).map { $0 * days * 43_200 / UInt64(count) }
  }

  /// Checks that every value is in its range.
  ///
  /// - Throws: ``SimulationMistake`` for the first value that is not.
  package func check() throws(SimulationMistake) {
    try Self.check(deviceCount, .devices)
    try Self.check(proverCount, .provers)
    try Self.check(proversPerDevice, .proversPerDevice)
    try Self.check(Int(clamping: days), .days)
    try Self.check(Int(clamping: validityDays), .validityDays)
    try Self.check(Int(clamping: syncSeconds), .syncSeconds)
    try Self.check(revocations.count, .revocations)
    guard (0...1).contains(lostShare), (0...1).contains(maliciousShare), lostShare + maliciousShare <= 1 else {
      throw .shares
    }
    guard revocations.allSatisfy({ $0 < duration }) else { throw .revocationAfterEnd }
    if case .drawn(let perDay, let zipf) = visits {
      guard (0.0001...1000).contains(perDay) else { throw .visitsPerDay }
      guard (0...4).contains(zipf) else { throw .zipf }
      guard perDay * Double(deviceCount) * Double(days) <= Self.visitLimit else { throw .tooManyVisits }
    }
  }

  /// The most visits of a simulation.
  private static let visitLimit = 1e9

  private static func check(_ value: Int, _ quantity: SimulationQuantity) throws(SimulationMistake) {
    guard quantity.range.contains(value) else { throw .outOfRange(quantity) }
  }
}

/// The source of visits.
package enum VisitPlan: Sendable {
  /// Random visits: `perDay` is the mean number for a device a day. The device with the popularity n gets 1/n^`zipf` of the visits
  /// that the first one gets.
  case drawn(perDay: Double, zipf: Double)
  /// These visits, in the order of their times.
  case listed([SimulatedVisit])
}

/// A quantity of a simulation that has a range.
package enum SimulationQuantity: Sendable {
  /// A number of things.
  case devices, provers, proversPerDevice, revocations
  /// A time, in days.
  case days, validityDays
  /// A time, in seconds.
  case syncSeconds

  /// The values that are permitted.
  package var range: ClosedRange<Int> {
    switch self {
    case .devices, .provers: 1...1_000_000
    case .proversPerDevice: 1...1000
    case .days: 1...366
    case .validityDays: 1...3660
    case .syncSeconds: 60...31_622_400
    case .revocations: 1...10_000
    }
  }
}

/// A reason why settings cannot be simulated.
package enum SimulationMistake: Error, Equatable {
  /// The quantity is not in its range.
  case outOfRange(SimulationQuantity)
  /// The mean number of visits is not from 0.0001 to 1000.
  case visitsPerDay
  /// The exponent is not from 0 to 4.
  case zipf
  /// There would be more than 10^9 visits.
  case tooManyVisits
  /// A share is not from 0 to 1, or both together are more than 1.
  case shares
  /// A revocation is not before the end.
  case revocationAfterEnd
}
