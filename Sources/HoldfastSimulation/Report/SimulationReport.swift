import HoldfastFormats

/// The results of a simulation.
package struct SimulationReport: Sendable {
  /// The settings, with the revocations in the order of their times.
  package let settings: SimulationSettings
  /// The time until devices knew, over all revocations.
  package let all: ReachFigures
  /// The time until devices knew, for each revocation.
  package let each: [ReachFigures]
  /// The share of devices that know, by the hours after a revocation.
  let curve: [(hours: Double, share: Double)]
  private let visits: [(kind: VisitKind, figures: VisitFigures)]
  /// The number of forged bulletins that devices have taken.
  package let forgedTakenCount: Int
  /// The number of times that the service signed bulletins.
  package let bulletinCount: Int
  /// The bytes of a round's messages without bulletins, with the state of the list.
  package let roundBytes: Int

  init(
    settings: SimulationSettings, all: ReachFigures, each: [ReachFigures],
    curve: [(hours: Double, share: Double)], visits: [(kind: VisitKind, figures: VisitFigures)], forgedTakenCount: Int,
    bulletinCount: Int, roundBytes: Int
  ) {
    (self.settings, self.all, self.each, self.curve) = (settings, all, each, curve)
    self.visits = visits
    (self.forgedTakenCount, self.bulletinCount, self.roundBytes) = (forgedTakenCount, bulletinCount, roundBytes)
  }

  /// The most bytes that a visit may cost at which there is nothing to say.
  package static let idleByteLimit = 12

  /// Whether the rules held: no forged bulletin was taken, and a visit at which there was nothing to say cost no check and few bytes.
  package var isSound: Bool {
    let idle = self[.idle]
    return forgedTakenCount == 0 && idle.checks.most == 0 && self[.asked].checks.most == 0
      && idle.bytes.most <= Self.idleByteLimit
  }

  /// The figures of the visits of a kind.
  package subscript(kind: VisitKind) -> VisitFigures {
    visits.first { $0.kind == kind }?.figures ?? VisitOccurrences().figures
  }
}

extension SimulationReport {
  /// The report as one JSON object. Times are in seconds, shares and means are decimal texts.
  package var json: JSONValue {
    .object([
      (
        "fleet",
        .object([
          ("devices", .integer(UInt64(settings.deviceCount))), ("provers", .integer(UInt64(settings.proverCount))),
          ("days", .integer(settings.days)), ("seed", .string(String(settings.seed))),
          ("sync_seconds", .integer(settings.syncSeconds)), ("bulletins", .integer(UInt64(bulletinCount))),
          ("round_bytes", .integer(UInt64(roundBytes))),
        ])
      ),
      ("overall", json(of: all)), ("revocations", .array(each.map(json))),
      ("visits", .object(visits.map { ($0.kind.rawValue, json(of: $0.figures)) })),
      ("forged_taken", .integer(UInt64(forgedTakenCount))), ("sound", .bool(isSound)),
    ])
  }

  private func json(of figures: ReachFigures) -> JSONValue {
    var members: [(String, JSONValue)] = []
    if let revoked = figures.revoked { members.append(("revoked", .integer(revoked))) }
    for (name, seconds) in zip(["p50", "p99", "p999"], figures.seconds) {
      members.append((name, seconds.map { .integer($0) } ?? .null))
    }
    members.append(("share", .string(DecimalText.of(figures.share, decimals: 6))))
    return .object(members)
  }

  private func json(of figures: VisitFigures) -> JSONValue {
    .object([
      ("count", .integer(UInt64(figures.count))), ("bytes", json(of: figures.bytes)),
      ("checks", json(of: figures.checks)),
    ])
  }

  private func json(of figures: Figures) -> JSONValue {
    .object([
      ("total", .integer(UInt64(figures.total))), ("mean", .string(DecimalText.of(figures.mean, decimals: 4))),
      ("p99", .integer(UInt64(figures.p99))), ("max", .integer(UInt64(figures.most))),
    ])
  }
}

extension SimulationReport {
  /// The most revocations that the text shows.
  private static let shownLimit = 20

  /// The report for people, with a line feed at the end of each line.
  package var text: String {
    var lines = [
      "\(settings.deviceCount) devices, \(settings.proverCount) provers, \(settings.days) days, "
        + "\(settings.revocations.count) revocations, seed \(settings.seed)",
      "", "time until devices know         50 %       99 %     99.9 %   know at the end", row("all revocations", all),
    ]
    for figures in each.prefix(Self.shownLimit) {
      lines.append(row("revoked at \(Self.duration(figures.revoked ?? 0))", figures))
    }
    if each.count > Self.shownLimit {
      lines.append("  … and \(each.count - Self.shownLimit) more, which --json shows")
    }
    lines += [
      "", "costs of bulletins              visits   bytes: mean    p99    max   checks: mean  p99  max",
    ]
    for (kind, figures) in visits { lines.append(row(Self.name(of: kind), figures)) }
    lines += [
      "",
      "a round without bulletins: \(roundBytes) bytes, \(RoundSize.stateByteCount) of them for the state of the list",
      "forged bulletins taken: \(forgedTakenCount)",
    ]
    return lines.map { $0 + "\n" }.joined()
  }

  private func row(_ name: String, _ figures: ReachFigures) -> String {
    "  " + Self.padded(name, 24, isLeft: true)
      + figures.seconds.map { Self.padded($0.map(Self.duration) ?? "never", 11) }.joined()
      + Self.padded("\(DecimalText.of(100 * figures.share, decimals: 3)) %", 18)
  }

  private func row(_ name: String, _ figures: VisitFigures) -> String {
    let (bytes, checks) = (figures.bytes, figures.checks)
    let columns = [
      (String(figures.count), 10), (DecimalText.of(bytes.mean, decimals: 1), 14), (String(bytes.p99), 7),
      (String(bytes.most), 7), (DecimalText.of(checks.mean, decimals: 4), 15), (String(checks.p99), 5),
      (String(checks.most), 5),
    ]
    return "  " + Self.padded(name, 26, isLeft: true) + columns.map { Self.padded($0.0, $0.1) }.joined()
  }

  private static func name(of kind: VisitKind) -> String {
    switch kind {
    case .any: "all visits"
    case .idle: "nothing to say"
    case .asked: "only the list was asked for"
    case .delivered: "bulletins delivered"
    case .malicious: "malicious couriers"
    }
  }

  /// A time in days, hours, minutes and seconds, of which the two largest are shown.
  private static func duration(_ seconds: UInt64) -> String {
    let units: [(UInt64, String)] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")]
    guard let first = units.firstIndex(where: { seconds >= $0.0 }) else { return "0 s" }
    let (size, name) = units[first]
    guard first + 1 < units.count, seconds % size / units[first + 1].0 > 0 else { return "\(seconds / size) \(name)" }
    return "\(seconds / size) \(name) \(seconds % size / units[first + 1].0) \(units[first + 1].1)"
  }

  private static func padded(_ text: String, _ width: Int, isLeft: Bool = false) -> String {
    let space = String(repeating: " ", count: max(width - text.count, 0))
    return isLeft ? text + space : space + text
  }
}

/// Texts of decimal fractions.
enum DecimalText {
  /// Returns a number that is not negative, rounded to this number of decimals, without zeros at the end.
  static func of(_ value: Double, decimals: Int) -> String {
    let factor = (0..<decimals).reduce(1.0) { factor, _ in factor * 10 }
    let digits = String(UInt64((value * factor).rounded()))
    let padded = String(repeating: "0", count: max(decimals + 1 - digits.count, 0)) + digits
    var fraction = padded.suffix(decimals)
    while fraction.last == "0" { fraction.removeLast() }
    return padded.dropLast(decimals) + (fraction.isEmpty ? "" : ".") + fraction
  }
}
