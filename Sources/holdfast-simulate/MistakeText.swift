import HoldfastSimulation

/// The texts of mistakes in what is to be simulated.
enum MistakeText {
  static func of(_ mistake: SimulationMistake) -> String {
    switch mistake {
    case .outOfRange(let quantity):
      let (name, unit) = option(of: quantity)
      return "\(name) must be from \(quantity.range.lowerBound) to \(quantity.range.upperBound)\(unit)"
    case .visitsPerDay: return "--visits-per-day must be from 0.0001 to 1000"
    case .zipf: return "--zipf must be from 0 to 4"
    case .tooManyVisits:
      return "there would be more than 10^9 visits: --devices, --visits-per-day or --days is too large"
    case .shares: return "--lost and --malicious must be from 0 to 1, and at most 1 together"
    case .revocationAfterEnd: return "--revoke-at must be before the end of --days"
    }
  }

  private static func option(of quantity: SimulationQuantity) -> (name: String, unit: String) {
    switch quantity {
    case .devices: ("--devices", "")
    case .provers: ("--provers", "")
    case .proversPerDevice: ("--provers-per-device", "")
    case .days: ("--days", "")
    case .validityDays: ("--validity-days", "")
    case .syncSeconds: ("--sync-hours", " seconds")
    case .revocations: ("the number of revocations", "")
    }
  }

  static func of(_ mistake: PatternMistake) -> String {
    "line \(mistake.line) of the file of --pattern: \(text(of: mistake.reason))"
  }

  private static func text(of reason: PatternMistake.Reason) -> String {
    switch reason {
    case .header: "the first line must be \(VisitPattern.header)"
    case .noVisits: "there is no visit"
    case .fields: "a line must have three fields"
    case .number: "a field must be a decimal number of at most 15 digits, without zeros in front"
    case .afterEnd: "the time must be before the end of --days"
    case .order: "the time must not be before that of the line before"
    case .prover: "there is no such prover; they are counted from 0"
    case .device: "there is no such device; they are counted from 0"
    }
  }
}
