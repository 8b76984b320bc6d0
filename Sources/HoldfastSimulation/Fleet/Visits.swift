/// A visit: a prover has a command accepted by a device.
package struct SimulatedVisit: Sendable, Equatable {
  /// The time, in seconds from the beginning.
  package let second: UInt64
  /// The number of the prover, from 0.
  package let prover: Int
  /// The number of the device, from 0.
  package let device: Int

  /// Creates a visit.
  package init(second: UInt64, prover: Int, device: Int) {
    (self.second, self.prover, self.device) = (second, prover, device)
  }
}

/// The visits of a simulation, in the order of their times.
struct Visits: Sequence, IteratorProtocol {
  private let settings: SimulationSettings
  private var random: SeededRandom
  private var time = 0.0
  private var position = 0
  private let choice: ZipfChoice?

  init(_ settings: SimulationSettings) {
    self.settings = settings
    random = SeededRandom(seed: settings.seed, stream: 1)
    if case .drawn(_, let zipf) = settings.visits {
      choice = ZipfChoice(count: settings.deviceCount, exponent: zipf)
    } else {
      choice = nil
    }
  }

  mutating func next() -> SimulatedVisit? {
    switch settings.visits {
    case .listed(let visits):
      guard position < visits.count, visits[position].second < settings.duration else { return nil }
      defer { position += 1 }
      return visits[position]
    case .drawn(let perDay, _):
      guard let choice else { return nil }
      time += random.interval(rate: perDay * Double(settings.deviceCount) / 86_400)
      guard time < Double(settings.duration) else { return nil }
      let device = choice.index(at: random.share())
      let place = random.index(below: settings.proversPerDevice)
      return SimulatedVisit(second: UInt64(time), prover: prover(at: place, of: device), device: device)
    }
  }

  /// Returns one of the provers of a device: each place has a random prover, always the same one.
  private func prover(at place: Int, of device: Int) -> Int {
    var random = SeededRandom(seed: settings.seed, stream: 1 << 32 + UInt64(device) << 10 + UInt64(place))
    return random.index(below: settings.proverCount)
  }
}
