import HoldfastCore

/// A simulation of a fleet whose provers carry bulletins: discrete events in a virtual time, the real service, courier and device.
///
/// The same settings give the same report, although keys and token ids are random. Only if one bulletin is too short for the tokens that
/// are revoked between two signings, their ids decide which of them devices learn first.
///
/// Source: docs/couriers.md, Simulating a fleet.
package struct Simulation {
  private let settings: SimulationSettings
  private let service: SimulatedService
  private let devices: SimulatedDevices
  private let roles: [CourierRole]
  private let syncTimes: SyncTimes
  private var honest: HonestCouriers
  private let hostile: HostileCouriers
  private var reach: Reach
  private var costs: [VisitKind: VisitOccurrences] = [:]
  /// The revocations that a device learns of when the contents of its ledger change in one way.
  private var news: [LedgerChange: [Int]] = [:]

  private struct LedgerChange: Hashable {
    let before: UInt64
    let after: UInt64
  }

  /// Prepares a simulation: the service revokes all tokens and signs all bulletins.
  ///
  /// - Throws: ``SimulationMistake``; ``SimulationFault``, and the faults of the real parts.
  package init(_ given: SimulationSettings) throws {
    try given.check()
    var settings = given
    settings.revocations.sort()
    self.settings = settings
    roles = CourierRole.all(in: settings)
    syncTimes = SyncTimes(settings, roles: roles)
    let signings = syncTimes.signings(
      of: settings.revocations, pause: SimulatedService.signingPause, duration: settings.duration)
    service = try SimulatedService(settings, signings: signings)
    devices = try SimulatedDevices(settings, service: service)
    honest = HonestCouriers(service: service)
    hostile = try HostileCouriers(settings, service: service)
    reach = Reach(
      deviceCount: settings.deviceCount, revocations: settings.revocations, duration: settings.duration)
  }

  /// Runs the simulation to its end.
  ///
  /// - Parameter progress: is told the share of the time that has passed, about a thousand times.
  /// - Throws: the faults of the real parts.
  package mutating func run(progress: (Double) -> Void = { _ in }) throws -> SimulationReport {
    let step = max(settings.duration / 1000, 1)
    var next = step
    for visit in Visits(settings) {
      if visit.second >= next {
        progress(Double(visit.second) / Double(settings.duration))
        next = visit.second + step
      }
      try run(visit)
    }
    return SimulationReport(
      settings: settings, all: reach.all, each: reach.each, curve: reach.curve,
      visits: VisitKind.allCases.map { (kind: $0, figures: (costs[$0] ?? VisitOccurrences()).figures) },
      forgedTakenCount: devices.forgedTakenCount, bulletinCount: service.editions.count,
      roundBytes: RoundSize().byteCount)
  }

  private mutating func run(_ visit: SimulatedVisit) throws {
    let role = roles[visit.prover]
    let synchronised = role == .lost ? nil : syncTimes.last(of: visit.prover, before: visit.second)
    let before = devices.ledgers.contents(of: visit.device)
    let kind: VisitKind
    var connection: SimulatedConnection?
    if role.isMalicious {
      var open = try devices.connect(to: visit.device)
      try hostile.visit(as: role, over: &open, synchronised: synchronised, at: visit.second)
      (kind, connection) = (.malicious, open)
    } else {
      let state = try devices.state(of: visit.device)
      let devices = devices
      let (ending, open) = try honest.visit(visit, synchronised: synchronised, state: state) {
        try devices.connect(to: visit.device)
      }
      (kind, connection) = (VisitKind(ending), open)
    }
    let bytes = RoundSize.stateByteCount + (connection?.byteCount ?? 0)
    costs[kind, default: VisitOccurrences()].add(bytes: bytes, checks: connection?.checkCount ?? 0)
    costs[.any, default: VisitOccurrences()].add(bytes: bytes, checks: connection?.checkCount ?? 0)
    if connection != nil { noteNews(of: visit, since: before) }
  }

  /// Takes note of the revocations that are new in the ledger of the visited device.
  private mutating func noteNews(of visit: SimulatedVisit, since before: SimulatedLedgers.Contents) {
    let after = devices.ledgers.contents(of: visit.device)
    guard after.number != before.number else { return }
    let change = LedgerChange(before: before.number, after: after.number)
    if news[change] == nil {
      let known = Set(before.revoked)
      news[change] = after.revoked.filter { !known.contains($0) }.compactMap { service.revocations[$0.token] }
    }
    for revocation in news[change] ?? [] { reach.note(revocation, at: visit.second) }
  }
}

/// The kinds of visits that are counted apart.
package enum VisitKind: String, Sendable, CaseIterable {
  /// All visits.
  case any
  /// The device's list was as the courier expected, and it had nothing to deliver.
  case idle
  /// The courier asked for the list, because it did not know it or other couriers had delivered, and had nothing to deliver.
  case asked
  /// The courier delivered bulletins.
  case delivered
  /// The courier is malicious.
  case malicious

  init(_ ending: HonestCouriers.Ending) {
    self =
      switch ending {
      case .idle: .idle
      case .asked: .asked
      case .delivered: .delivered
      }
  }
}
