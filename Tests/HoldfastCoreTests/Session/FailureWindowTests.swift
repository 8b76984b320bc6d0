import Testing

import HoldfastCore

/// Failed proofs are slowed from the tenth in a minute on.
@Suite struct FailureWindowTests {
  @Test func `the tenth failure within a minute slows, and only until the oldest of ten is a minute old`() {
    var window = FailureWindow()
    for time in 0..<9 as Range<UInt64> { window.record(at: time * 1000) }
    #expect(window.delayMilliseconds(at: 9000) == 0)
    window.record(at: 9000)
    #expect(window.delayMilliseconds(at: 9000) == 1000)
    #expect(window.delayMilliseconds(at: 59_999) == 1000)
    #expect(window.delayMilliseconds(at: 60_000) == 0)
  }

  @Test func `each later failure moves the window by one`() {
    var window = FailureWindow()
    for time in 0..<13 as Range<UInt64> { window.record(at: time * 1000) }
    #expect(window.delayMilliseconds(at: 62_999) == 1000)
    #expect(window.delayMilliseconds(at: 63_000) == 0)
    for time in 100_000..<100_009 as Range<UInt64> { window.record(at: time) }
    #expect(window.delayMilliseconds(at: 100_010) == 0)
    window.record(at: 100_010)
    #expect(window.delayMilliseconds(at: 100_010) == 1000)
  }
}
