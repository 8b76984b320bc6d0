import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Testing

@Suite struct SystemTests {
  @Test func `two random fills differ`() throws {
    var random = SystemRandom()
    let first: FixedBytes<32> = try random.fixedBytes()
    let second: FixedBytes<32> = try random.fixedBytes()
    #expect(first != second)
  }

  @Test func `filling nothing succeeds`() throws {
    var random = SystemRandom()
    let nothing: FixedBytes<0> = try random.fixedBytes()
    #expect(nothing == TypedBytes())
  }

  @Test func `the clock is past the day this was written, and the other one does not go back`() {
    let clock = SystemClock()
    #expect(clock.unixSeconds()! > 1_700_000_000)
    let before = clock.monotonicMilliseconds()
    #expect(clock.monotonicMilliseconds() >= before)
  }
}
