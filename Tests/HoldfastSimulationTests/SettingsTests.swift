import Testing

import HoldfastSimulation

/// Settings and files of visits that are refused.
@Suite struct SettingsTests {
  private func visits(_ text: String) throws(PatternMistake) -> [SimulatedVisit] {
    try VisitPattern.visits(in: Array(text.utf8), proverCount: 3, deviceCount: 5, duration: 1000)
  }

  @Test func `a file of visits is read line by line`() throws {
    let expected = [
      SimulatedVisit(second: 0, prover: 2, device: 4), SimulatedVisit(second: 10, prover: 0, device: 0),
      SimulatedVisit(second: 10, prover: 1, device: 3),
    ]
    let text = "seconds,prover,device\n0,2,4\n10,0,0\n10,1,3"
    #expect(try visits(text) == expected)
    #expect(try visits(text + "\n") == expected)
  }

  @Test(arguments: [
    ("", 1, PatternMistake.Reason.header), ("0,0,0\n", 1, .header), ("seconds,prover,device\r\n0,0,0\n", 1, .header),
    ("Seconds,prover,device\n0,0,0\n", 1, .header), ("seconds,prover,device", 2, .noVisits),
    ("seconds,prover,device\n", 2, .noVisits), ("seconds,prover,device\n\n", 2, .fields),
    ("seconds,prover,device\n1,2\n", 2, .fields), ("seconds,prover,device\n1,2,3,4\n", 2, .fields),
    ("seconds,prover,device\n0,0,0\n\n1,0,0\n", 3, .fields), ("seconds,prover,device\n1, 2,3\n", 2, .number),
    ("seconds,prover,device\n-1,0,0\n", 2, .number), ("seconds,prover,device\n+1,0,0\n", 2, .number),
    ("seconds,prover,device\n1.5,0,0\n", 2, .number), ("seconds,prover,device\n01,0,0\n", 2, .number),
    ("seconds,prover,device\n,0,0\n", 2, .number), ("seconds,prover,device\n0,0,0\r\n", 2, .number),
    ("seconds,prover,device\n1000000000000000,0,0\n", 2, .number), ("seconds,prover,device\n1000,0,0\n", 2, .afterEnd),
    ("seconds,prover,device\n2,0,0\n1,0,0\n", 3, .order), ("seconds,prover,device\n0,3,0\n", 2, .prover),
    ("seconds,prover,device\n0,0,5\n", 2, .device),
  ])
  func `a mistake in a file of visits is named with its line`(text: String, line: Int, reason: PatternMistake.Reason) {
    let mistake = #expect(throws: PatternMistake.self) { try visits(text) }
    #expect(mistake?.line == line && mistake?.reason == reason)
  }

  @Test func `settings outside of their ranges are refused`() throws {
    func mistake(_ change: (inout SimulationSettings) -> Void) -> SimulationMistake? {
      var settings = SimulationSettings()
      change(&settings)
      do throws(SimulationMistake) { try settings.check() } catch { return error }
      return nil
    }
    #expect(mistake { _ in } == nil)
    #expect(mistake { $0.deviceCount = 0 } == .outOfRange(.devices))
    #expect(mistake { $0.proverCount = 1_000_001 } == .outOfRange(.provers))
    #expect(mistake { $0.proversPerDevice = 0 } == .outOfRange(.proversPerDevice))
    #expect(mistake { $0.days = 367 } == .outOfRange(.days))
    #expect(mistake { $0.validityDays = .max } == .outOfRange(.validityDays))
    #expect(mistake { $0.syncSeconds = 59 } == .outOfRange(.syncSeconds))
    #expect(mistake { $0.revocations = [] } == .outOfRange(.revocations))
    #expect(mistake { $0.revocations = [30 * 86_400] } == .revocationAfterEnd)
    #expect(mistake { ($0.lostShare, $0.maliciousShare) = (0.6, 0.5) } == .shares)
    #expect(mistake { $0.lostShare = .nan } == .shares)
    #expect(mistake { $0.visits = .drawn(perDay: 0, zipf: 1) } == .visitsPerDay)
    #expect(mistake { $0.visits = .drawn(perDay: 1, zipf: -1) } == .zipf)
    #expect(mistake { ($0.deviceCount, $0.visits) = (1_000_000, .drawn(perDay: 100, zipf: 1)) } == .tooManyVisits)
  }

  @Test func `revocations are spread over the first half`() {
    #expect(SimulationSettings.spread(4, over: 2) == [0, 21_600, 43_200, 64_800])
  }
}
