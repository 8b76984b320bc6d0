import HoldfastCore

/// The rules of a command that depend on its parameters or on the circumstances of a round, in addition to its
/// ``CommandRule``. A device on Linux applies them; a microcontroller has no room for them.
package struct CommandConditions: Sendable, Equatable {
  /// The parameters that the command takes; nil for any.
  package var parameters: ParameterRules?
  /// The circumstances in which the command needs further factors.
  package var stepUps: [StepUp] = []
  /// The first version of the app that the command does not take; nil for no limit.
  package var maximumVersion: AppVersion?

  package init() {}

  /// Whether nothing depends on parameters or circumstances.
  package var isEmpty: Bool { parameters == nil && stepUps.isEmpty && maximumVersion == nil }

  /// Whether the command needs further factors at a token's first use.
  var dependsOnUse: Bool { stepUps.contains { $0.condition == .firstUse } }

  /// Returns the further factors that the command needs in these circumstances; nil if its parameters are refused.
  func furtherFactors(in circumstances: borrowing Circumstances) -> Factors? {
    guard parameters?.allow(circumstances.parameters) ?? true else { return nil }
    if let maximumVersion, circumstances.version >= maximumVersion { return nil }
    var factors: Factors = []
    for stepUp in stepUps where stepUp.condition.applies(in: circumstances) { factors.formUnion(stepUp.factors) }
    return factors
  }
}

/// The facts about a round on which a command's rules can depend.
struct Circumstances {
  /// The parameters of the request, in order.
  let parameters: [BoundedText<64>]
  /// The device's time, in Unix seconds; nil if it has no clock.
  let now: UInt64?
  /// The version of the app that the token names; 0.0.0 if it names none.
  let version: AppVersion
  /// The time when the token was issued, in Unix seconds.
  let issuedAt: UInt64
  /// Whether the device has accepted this command of this token before, with all factors that a first use needs.
  let isIntroduced: Bool
}

/// The parameters that a command takes: a rule for each place, of which the last ones may be optional. Other numbers of
/// parameters are refused.
package struct ParameterRules: Sendable, Equatable {
  /// The most parameters of a request.
  static let maximumCount = 8

  /// The rules, at most ``maximumCount``.
  package let places: [ParameterRule]
  /// The number of parameters that must be given.
  package let requiredCount: Int

  package init(places: [ParameterRule], requiredCount: Int) {
    (self.places, self.requiredCount) = (places, requiredCount)
  }

  func allow(_ parameters: [BoundedText<64>]) -> Bool {
    (requiredCount...places.count).contains(parameters.count)
      && zip(places, parameters).allSatisfy { $0.allows($1) }
  }
}

/// The rule for the parameter at one place.
package enum ParameterRule: Sendable, Equatable {
  /// Any text.
  case any
  /// One of these texts, compared byte by byte.
  case oneOf([BoundedText<64>])
  /// A number in this range, in decimal digits without leading zeros.
  case number(ClosedRange<UInt64>)

  func allows(_ parameter: BoundedText<64>) -> Bool {
    switch self {
    case .any: true
    case .oneOf(let texts): texts.contains(parameter)
    case .number(let range): parameter.number.map { range.contains($0) } ?? false
    }
  }
}

/// Factors that a command needs in addition in certain circumstances.
package struct StepUp: Sendable, Equatable {
  /// The circumstances.
  package let condition: Condition
  /// The factors that are needed then, at least one.
  package let factors: Factors

  package init(_ condition: Condition, factors: Factors) {
    (self.condition, self.factors) = (condition, factors)
  }

  /// A circumstance that asks for further factors. One that cannot be told, because a parameter is no number or the
  /// device has no clock, counts as given.
  package enum Condition: Sendable, Equatable {
    /// The parameter at this place, counted from 1, is above the number, is no number, or is missing.
    case above(place: Int, UInt64)
    /// The time of day is not from the first minute up to before the second one, both counted from midnight in universal
    /// time. If the first is later, the hours go over midnight.
    case outsideHours(from: UInt64, to: UInt64)
    /// The token is older than this number of seconds.
    case tokenOlderThan(seconds: UInt64)
    /// The device has not accepted this command of this token yet, with the factors that this asks for.
    case firstUse
  }
}

extension StepUp.Condition {
  func applies(in circumstances: borrowing Circumstances) -> Bool {
    switch self {
    case .above(let place, let bound):
      guard circumstances.parameters.indices.contains(place - 1) else { return true }
      return circumstances.parameters[place - 1].number.map { $0 > bound } ?? true
    case .outsideHours(let first, let end):
      guard let now = circumstances.now else { return true }
      let minute = now % 86_400 / 60
      return first < end ? minute < first || minute >= end : minute >= end && minute < first
    case .tokenOlderThan(let seconds):
      guard let now = circumstances.now else { return true }
      return now > circumstances.issuedAt && now - circumstances.issuedAt > seconds
    case .firstUse: return !circumstances.isIntroduced
    }
  }
}

extension BoundedText<64> {
  /// The number that the text writes in decimal digits without a sign and leading zeros, at most 2^53 - 1; nil for any
  /// other text. A number has one form only, so that no actuator reads another one.
  fileprivate var number: UInt64? {
    let bytes = bytes
    guard (1...16).contains(bytes.count), bytes.count == 1 || bytes[0] != 0x30 else { return nil }
    var number: UInt64 = 0
    for index in bytes.indices {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      number = number * 10 + UInt64(bytes[index] - 0x30)
    }
    return number <= maximumInteger ? number : nil
  }
}
