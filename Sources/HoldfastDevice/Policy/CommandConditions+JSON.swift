import HoldfastCore
import HoldfastFormats

extension CommandConditions {
  /// The members of a command's rule that this reads.
  static let memberNames = ["parameters", "step_up", "maximum_version"]

  /// Reads the members of a command's rule.
  init(rule: JSONMember) throws(JSONMistake) {
    if let parameters = rule.member("parameters") { self.parameters = try ParameterRules(parameters) }
    if let version = rule.member("maximum_version") {
      var numbers: [UInt64] = []
      for element in try version.elements(count: 3) { numbers.append(try element.integer()) }
      maximumVersion = AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
    }
    if let stepUps = rule.member("step_up") {
      for element in try stepUps.elements(atMost: Self.maximumStepUpCount) { self.stepUps.append(try StepUp(element)) }
    }
  }

  /// The most step-ups of a command.
  private static let maximumStepUpCount = 16

  func members() -> [(String, JSONValue)] {
    (parameters.map { [("parameters", $0.json())] } ?? [])
      + (stepUps.isEmpty ? [] : [("step_up", .array(stepUps.map { $0.json() }))])
      + (maximumVersion.map { version in
        let numbers = [version.major, version.minor, version.patch]
        return [("maximum_version", .array(numbers.map { .integer($0) }))]
      } ?? [])
  }
}

extension ParameterRules {
  fileprivate init(_ list: JSONMember) throws(JSONMistake) {
    var places: [ParameterRule] = []
    var requiredCount = 0
    for element in try list.elements(atMost: ParameterRules.maximumCount) {
      try element.checkMembers(["one_of", "range", "optional"])
      let isOptional = try element.member("optional")?.flag() ?? false
      guard isOptional || requiredCount == places.count else {
        throw element.mistake(.form("optional, because an earlier parameter is"))
      }
      places.append(try ParameterRule(element))
      if !isOptional { requiredCount += 1 }
    }
    self.init(places: places, requiredCount: requiredCount)
  }

  fileprivate func json() -> JSONValue {
    .array(
      places.enumerated().map { (index, place) in
        .object(place.members() + (index < requiredCount ? [] : [("optional", .bool(true))]))
      })
  }
}

extension ParameterRule {
  /// The most texts of a set.
  private static let maximumTextCount = 256

  fileprivate init(_ rule: JSONMember) throws(JSONMistake) {
    switch (rule.member("one_of"), rule.member("range")) {
    case (nil, nil): self = .any
    case (let set?, nil):
      var texts: [BoundedText<64>] = []
      for element in try set.elements(atMost: Self.maximumTextCount) {
        guard let text = BoundedText<64>(try element.text(byteCounts: 0...64)), !texts.contains(text) else {
          throw element.mistake(.form("a text of at most 64 bytes that is named once"))
        }
        texts.append(text)
      }
      guard !texts.isEmpty else { throw set.mistake(.form("an array with at least one text")) }
      self = .oneOf(texts)
    case (nil, let range?):
      let bounds = try range.elements(count: 2)
      let least = try bounds[0].integer()
      self = .number(least...(try bounds[1].integer(least...maximumInteger)))
    case (_?, let range?): throw range.mistake(.form("absent, because there is one_of"))
    }
  }

  fileprivate func members() -> [(String, JSONValue)] {
    switch self {
    case .any: []
    case .oneOf(let texts): [("one_of", .array(texts.map { .string($0.description) }))]
    case .number(let range): [("range", .array([.integer(range.lowerBound), .integer(range.upperBound)]))]
    }
  }
}

extension StepUp {
  private static let conditionNames = ["above", "outside_hours", "token_older_than_seconds", "first_use"]

  fileprivate init(_ stepUp: JSONMember) throws(JSONMistake) {
    try stepUp.checkMembers(Self.conditionNames + ["factors"])
    let factors = try Factors(stepUp.required("factors"))
    guard !factors.isEmpty else { throw stepUp.mistake(.form("an object with at least one factor")) }
    let conditions = Self.conditionNames.compactMap { name in stepUp.member(name).map { (name, $0) } }
    guard conditions.count == 1, let (name, condition) = conditions.first else {
      throw stepUp.mistake(.form("an object with exactly one of \(Self.conditionNames.joined(separator: ", "))"))
    }
    switch name {
    case "above":
      try condition.checkMembers(["parameter", "value"])
      let place = try condition.required("parameter").integer(1...UInt64(ParameterRules.maximumCount))
      self.init(.above(place: Int(place), try condition.required("value").integer()), factors: factors)
    case "outside_hours":
      let ends = try condition.elements(count: 2)
      let (first, end) = (try ends[0].minuteOfDay(), try ends[1].minuteOfDay())
      guard first != end else { throw condition.mistake(.form("two different times of day")) }
      self.init(.outsideHours(from: first, to: end), factors: factors)
    case "token_older_than_seconds": self.init(.tokenOlderThan(seconds: try condition.integer()), factors: factors)
    default:
      guard try condition.flag() else { throw condition.mistake(.form("true")) }
      self.init(.firstUse, factors: factors)
    }
  }

  fileprivate func json() -> JSONValue {
    let member: (String, JSONValue) =
      switch condition {
      case .above(let place, let value):
        ("above", .object([("parameter", .integer(UInt64(place))), ("value", .integer(value))]))
      case .outsideHours(let first, let end):
        ("outside_hours", .array([.string(first.timeOfDay), .string(end.timeOfDay)]))
      case .tokenOlderThan(let seconds): ("token_older_than_seconds", .integer(seconds))
      case .firstUse: ("first_use", .bool(true))
      }
    return .object([member, ("factors", .array(factors.names.map { .string($0) }))])
  }
}

extension UInt64 {
  /// A minute of the day as `08:30`.
  fileprivate var timeOfDay: String {
    [self / 60, self % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
  }
}

extension JSONMember {
  /// Returns the minute of the day that a text such as `08:30` names; `24:00` is the end of the day.
  fileprivate func minuteOfDay() throws(JSONMistake) -> UInt64 {
    let digits = Array((value.text ?? "").utf8)
    guard digits.count == 5, digits[2] == 0x3a,
      [0, 1, 3, 4].allSatisfy({ (0x30...0x39).contains(digits[$0]) })
    else { throw mistake(.form("a time of day, such as 08:30")) }
    let hour = UInt64(digits[0] - 0x30) * 10 + UInt64(digits[1] - 0x30)
    let minute = UInt64(digits[3] - 0x30) * 10 + UInt64(digits[4] - 0x30)
    guard minute < 60, hour * 60 + minute <= 1440 else { throw mistake(.form("a time of day, such as 08:30")) }
    return hour * 60 + minute
  }

  /// Returns the elements; throws if this is not an array, or has more than `limit`.
  fileprivate func elements(atMost limit: Int) throws(JSONMistake) -> [JSONMember] {
    let elements = try elements()
    guard elements.count <= limit else { throw mistake(.atMost(limit)) }
    return elements
  }
}
