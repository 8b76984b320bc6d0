import HoldfastCore
import HoldfastLinux
import Synchronization
import TestSupport
import Testing

@Suite struct SteadyClockTests {
  @Test(arguments: [-400_000, -301, 301, 86_400 * 365])
  func `a clock that was set says nothing until it is right again`(jump: Int64) throws {
    let base = TestClock(seconds: 1_790_000_000)
    let elapsed = Atomic<Int64>(5000)
    let clock = SteadyClock(base, secondsSinceStart: { elapsed.load(ordering: .relaxed) })
    #expect(clock.unixSeconds() == 1_790_000_000)
    base.seconds = UInt64(1_790_000_000 + jump)
    #expect(clock.unixSeconds() == nil)
    #expect(clock.unixSeconds() == nil, "a second look must not accept it")
    elapsed.store(5010, ordering: .relaxed)
    base.seconds = 1_790_000_010
    #expect(clock.unixSeconds() == 1_790_000_010)
    base.seconds = nil
    #expect(clock.unixSeconds() == nil)
  }

  @Test func `small corrections and a machine that slept are no jump`() throws {
    let base = TestClock(seconds: 1_790_000_000)
    let elapsed = Atomic<Int64>(0)
    let clock = SteadyClock(base, secondsSinceStart: { elapsed.load(ordering: .relaxed) })
    for step in 1...20 {
      base.seconds = 1_790_000_000 + UInt64(step) * 200
      #expect(clock.unixSeconds() == base.seconds)
    }
    elapsed.store(86_400, ordering: .relaxed)
    base.seconds = 1_790_000_000 + 4000 + 86_400
    #expect(clock.unixSeconds() == base.seconds)
  }
}
