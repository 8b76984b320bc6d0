import HoldfastFormats
import Testing

import HoldfastSimulation

/// Whole simulations, by the real service, courier and device.
@Suite struct SimulationTests {
  /// A small fleet of which every device is reached.
  private var fleet: SimulationSettings {
    var settings = SimulationSettings()
    (settings.deviceCount, settings.proverCount, settings.proversPerDevice, settings.days) = (60, 12, 4, 10)
    settings.visits = .drawn(perDay: 6, zipf: 0.5)
    settings.revocations = SimulationSettings.spread(3, over: 10)
    settings.syncSeconds = 12 * 3600
    return settings
  }

  private func run(_ settings: SimulationSettings) throws -> SimulationReport {
    var simulation = try Simulation(settings)
    return try simulation.run()
  }

  /// One device, one prover that fetches bulletins every minute, and visits at these times.
  private func visits(_ seconds: [UInt64], revoked: [UInt64]) -> SimulationSettings {
    var settings = SimulationSettings()
    (settings.deviceCount, settings.proverCount, settings.days, settings.syncSeconds) = (1, 1, 1, 60)
    settings.visits = .listed(seconds.map { SimulatedVisit(second: $0, prover: 0, device: 0) })
    settings.revocations = revoked
    return settings
  }

  @Test func `the same seed gives the same report, and another one another`() throws {
    var settings = fleet
    (settings.lostShare, settings.maliciousShare) = (0.1, 0.4)
    let first = try run(settings)
    #expect(try run(settings).json == first.json)
    settings.seed = 2
    let other = try run(settings)
    #expect(other.json != first.json && other[.any].count != first[.any].count)
  }

  @Test func `one device and one prover cost what is computed by hand`() throws {
    // 1000: no bulletin yet. 3000: the list is asked for, and the bulletin is delivered. 4000: nothing to say. 5000: the same.
    let report = try run(visits([1000, 3000, 4000, 5000], revoked: [2000]))
    // The state of the list in M3 has 10 bytes, and `[7, null]` has 3. `[8, 0, list]` has 4 and, for the device and its group, an
    // array, an audience and the number 0 each.
    let question = 3 + 4 + 2 * (1 + 17 + 1)
    #expect(report[.asked].count == 0)
    // Claims: a map; number, predecessor 0, time, audience; one token in an array, with its own array, its id and its end.
    let claims = 1 + (1 + 9) + (1 + 1) + (1 + 5) + (1 + 17) + (1 + 1 + 1 + 17 + 5)
    // Tag and array; header with algorithm, key id and type; empty map; claims; signature.
    let bulletin = 1 + 1 + (2 + 1 + 2 + 10 + 19) + 1 + (2 + claims) + (2 + 64)
    #expect(bulletin == 167)
    // `[7, bulletin]`, and `[8, 0]`.
    #expect(report[.delivered].count == 1 && report[.delivered].bytes.total == 10 + question + 2 + 2 + bulletin + 3)
    #expect(report[.delivered].checks.total == 1)
    #expect(report[.idle].count == 3 && report[.idle].bytes.total == 30 && report[.idle].checks.total == 0)
    #expect(report[.any].count == 4 && report[.malicious].count == 0)
    #expect(report.all.seconds == [1000, 1000, 1000] && report.all.share == 1)
    #expect(report.each == [ReachFigures(revoked: 2000, seconds: [1000, 1000, 1000], share: 1)])
    #expect(report.bulletinCount == 1 && report.isSound)
  }

  @Test func `a device takes one new bulletin at each visit, in their order`() throws {
    let report = try run(visits([100, 9000, 10_000, 11_000], revoked: [7000, 1000, 4000]))
    #expect(report.bulletinCount == 3)
    #expect(report.each.map(\.revoked) == [1000, 4000, 7000])
    #expect(report.each.map(\.seconds[0]) == [8000, 6000, 4000])
    #expect(report[.delivered].count == 3 && report[.delivered].checks.total == 3)
  }

  @Test func `revocations of one minute are in one bulletin`() throws {
    let report = try run(visits([100, 9000], revoked: [6000, 6001, 6002]))
    #expect(report.bulletinCount <= 2)
    #expect(report.each.filter { $0.seconds[0] != nil }.count >= 1)
    let together = try run(visits([100, 9000], revoked: [6000, 6000, 6000]))
    #expect(together.bulletinCount == 1 && together.all.share == 1)
  }

  @Test func `what is revoked after the last visit is never known`() throws {
    let report = try run(visits([100, 2000], revoked: [3000]))
    #expect(report.all.seconds == [nil, nil, nil] && report.all.share == 0)
    #expect(report.text.contains("never"))
  }

  @Test func `no device takes a bulletin of a malicious courier, and honest ones still reach all`() throws {
    var settings = fleet
    // Each device has an honest courier, too.
    (settings.proversPerDevice, settings.maliciousShare) = (30, 0.5)
    let report = try run(settings)
    #expect(report.forgedTakenCount == 0 && report.isSound)
    #expect(report[.malicious].count > 500 && report[.malicious].checks.total > 50)
    #expect(report[.malicious].checks.most == 1)
    #expect(report.all.share == 1)
  }

  @Test func `only malicious couriers that replay bring anything, and it is genuine`() throws {
    var settings = fleet
    settings.maliciousShare = 1
    let report = try run(settings)
    #expect(report.forgedTakenCount == 0 && report[.any].count == report[.malicious].count)
    #expect(report.all.share > 0 && report.all.share < 1)
  }

  @Test func `lost couriers slow bulletins down, and without any other nobody learns anything`() throws {
    var settings = fleet
    settings.days = 20
    let all = try run(settings)
    settings.lostShare = 0.7
    let few = try run(settings)
    let (early, late) = (try #require(all.all.seconds[0]), try #require(few.all.seconds[0]))
    #expect(late > early * 3 / 2)
    settings.lostShare = 1
    let none = try run(settings)
    #expect(none.all.share == 0 && none.bulletinCount == 0)
    #expect(none[.any].count == none[.idle].count + none[.asked].count)
  }

  @Test func `a device that only a lost courier visits learns nothing`() throws {
    var settings = visits([], revoked: [1000])
    (settings.deviceCount, settings.proverCount, settings.lostShare) = (2, 2, 0.5)
    settings.visits = .listed((0..<2).map { SimulatedVisit(second: 5000, prover: $0, device: $0) })
    let report = try run(settings)
    #expect(report.all.share == 0.5 && report[.delivered].count == 1 && report[.idle].count == 1)
  }

  @Test func `rarer fetching slows bulletins down`() throws {
    var settings = fleet
    settings.proverCount = 4
    settings.syncSeconds = 3600
    let often = try #require(try run(settings).all.seconds[0])
    settings.syncSeconds = 72 * 3600
    let rarely = try run(settings).all.seconds[0] ?? .max
    #expect(rarely > often)
  }

  @Test func `a visit without news costs no check and at most twelve bytes`() throws {
    let report = try run(fleet)
    #expect(report[.idle].count > 1000)
    #expect(report[.idle].checks.total == 0 && report[.idle].bytes.most == 10)
    #expect(report[.asked].checks.total == 0 && report[.asked].bytes.most < 80)
    #expect(report[.delivered].checks.most == 1)
    #expect(report[.any].count == [.idle, .asked, .delivered, .malicious].reduce(0) { $0 + report[$1].count })
  }
}
