/// The behaviour of a prover as a courier.
package enum CourierRole: String, Sendable, CaseIterable {
  /// It delivers as the prover of this project does.
  case honest
  /// It never fetches bulletins, so that it delivers none.
  case lost
  /// It delivers bulletins that it has changed, or signed with a key of its own.
  case forger
  /// It delivers the oldest bulletins that it ever got, again and again.
  case replayer
  /// It delivers bulletins without their ends.
  case cutter
  /// It sends messages until the device closes the connection.
  case flooder
  /// It fetches bulletins and delivers none.
  case silent

  /// The behaviours of malicious couriers.
  package static let malicious: [CourierRole] = [.forger, .replayer, .cutter, .flooder, .silent]

  /// Whether the courier means harm.
  package var isMalicious: Bool { Self.malicious.contains(self) }

  /// Returns the role of each prover: the shares of the settings, at random, and among the malicious ones each behaviour in turn.
  static func all(in settings: SimulationSettings) -> [CourierRole] {
    let count = settings.proverCount
    let lostCount = Int((settings.lostShare * Double(count)).rounded())
    let maliciousCount = min(Int((settings.maliciousShare * Double(count)).rounded()), count - lostCount)
    var random = SeededRandom(seed: settings.seed, stream: 3)
    var roles = [CourierRole](repeating: .honest, count: count)
    for (index, prover) in (0..<count).shuffled(using: &random).prefix(lostCount + maliciousCount).enumerated() {
      roles[prover] = index < lostCount ? .lost : malicious[(index - lostCount) % malicious.count]
    }
    return roles
  }
}
