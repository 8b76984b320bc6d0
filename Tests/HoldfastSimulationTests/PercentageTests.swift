import Testing

import HoldfastSimulation

/// Shares and percentiles, computed by hand.
@Suite struct PercentageTests {
  @Test func `a share of things is the least number that is not below it`() {
    #expect(0.5.leastCount(of: 1) == 1)
    #expect(0.5.leastCount(of: 4) == 2 && 0.5.leastCount(of: 5) == 3)
    #expect(0.99.leastCount(of: 100) == 99 && 0.99.leastCount(of: 101) == 100)
    #expect(0.999.leastCount(of: 1000) == 999 && 0.999.leastCount(of: 100) == 100)
    #expect(0.999.leastCount(of: 100_000) == 99_900 && 0.99.leastCount(of: 1_000_000) == 990_000)
  }

  @Test func `figures of values are their sum, mean, 99th percentile and maximum`() {
    var values = Occurrences()
    #expect(values.figures == Occurrences().figures && values.figures.total == 0 && values.figures.mean == 0)
    for value in 1...200 { values.add(value) }
    #expect(values.figures.total == 20_100 && values.figures.mean == 100.5)
    #expect(values.figures.p99 == 198 && values.figures.most == 200)
    for _ in 0..<20_000 { values.add(0) }
    #expect(values.figures.p99 == 0 && values.figures.most == 200)
  }

  @Test func `a share is reached when the last device that it needs knows`() {
    var reach = Reach(deviceCount: 200, revocations: [10, 50], duration: 1000)
    for device in 1...200 { reach.note(0, at: 10 + UInt64(device)) }
    #expect(reach.each[0] == ReachFigures(revoked: 10, seconds: [100, 198, 200], share: 1))
    #expect(reach.each[1] == ReachFigures(revoked: 50, seconds: [nil, nil, nil], share: 0))
    // Of 400 pairs of a device and a revocation, half are 200.
    #expect(reach.all == ReachFigures(revoked: nil, seconds: [200, nil, nil], share: 0.5))
    for _ in 1...197 { reach.note(1, at: 350) }
    #expect(reach.each[1].seconds == [300, nil, nil] && reach.each[1].share == 0.985)
    // 99 % of 400 are 396, and 397 know.
    #expect(reach.all.seconds == [200, 300, nil])
  }
}
