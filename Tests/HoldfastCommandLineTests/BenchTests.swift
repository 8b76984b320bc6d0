import Testing

import holdfast

/// The statistics of `bench compare`, against published values, and what benchmarks read and show.
struct BenchTests {
  private func sample(_ values: [UInt64]) -> RankSumTest.Sample {
    Dictionary(grouping: values) { $0 }.map { ($0.key, UInt64($0.value.count)) }.sorted { $0.value < $1.value }
  }

  /// SciPy's reference page of `mannwhitneyu` has these values, with `method="asymptotic"`.
  @Test func `ranks are compared as in the example of SciPy`() {
    let test = RankSumTest(sample([19, 22, 16, 29, 24]), sample([20, 11, 17, 12]))
    #expect(test.statistic == 17)
    #expect(abs(test.probability - 0.111_346_886_533_140_41) < 1e-12)
  }

  /// R's reference page of `wilcox.test`, `Ozone ~ Month` of `airquality` in May and August: W = 127.5, p-value = 0.0001208. There
  /// are ties.
  @Test func `ranks with ties are compared as in the example of R`() {
    let may: [UInt64] = [
      41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37,
    ]
    let august: [UInt64] = [
      39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85,
    ]
    let test = RankSumTest(sample(may), sample(august))
    #expect(test.statistic == 127.5)
    #expect(abs(test.probability - 0.000_120_8) < 5e-8)
  }

  @Test func `equal samples and samples of one value do not differ`() {
    let values = sample([5, 6, 6, 9])
    #expect(RankSumTest(values, values).probability == 1)
    #expect(RankSumTest(sample([7]), sample([7])).probability == 1)
    #expect(RankSumTest(sample([7, 7]), sample([7])).probability == 1)
    #expect(MedianRatio(values, values).ratio == 1)
    #expect(MedianRatio(sample([0]), sample([0])) == MedianRatio(sample([1]), sample([1])))
  }

  /// Of 100 values, the interval of the median reaches from the 38th to the 63rd: 50 ± 11.2.
  @Test func `the interval of a ratio contains those of both medians`() {
    let (before, after) = (sample(Array(1001...1100)), sample(Array(2001...2100)))
    let ratio = MedianRatio(before, after)
    #expect(ratio.ratio == 2050.0 / 1050)
    #expect(ratio.low == 2038.0 / 1063 && ratio.high == 2063.0 / 1038)
  }

  @Test func `the executable mappings of files are counted, and no others`() {
    let map = """
      00001000-00003000 r-xp 00000000 08:01 5 /usr/bin/app
      00003000-00004000 rw-p 00000000 08:01 5 /usr/bin/app
      00010000-00011000 r-xp 00000000 00:00 0 [vdso]
      00020000-00024000 r-xp 00000000 08:01 6 /lib/with a space.so
      00030000-00031000 rwxp 00000000 00:00 0
      rubbish
      """
    #expect(HashedBytes.code(in: map) == 0x6000)
  }

  @Test func `the console of a board tells the instructions of each answer, and other lines are skipped`() {
    let text = """
      holdfast: start 1
      holdfast: status 0, ticks 70576, stack 8104
      holdfast: status 3, ticks x, stack 8104
      holdfast: the flash or the random source failed; everything is denied
      holdfast: status 0, ticks 3365, stack 8104
      holdfast: status 0, ticks 33
      """
    #expect(BoardConsole(text: text).instructions == [2_823_040, 134_600])
  }

  /// An answer of 560 bytes and a verdict of 30, each behind two bytes of length: 594 bytes.
  @Test func `instructions and bytes take the time that a board and its line need for them`() {
    let clock = BoardClock(megahertz: 64, bitsPerSecond: 115_200)
    #expect(clock.nanoseconds(instructions: 64_000) == 1_000_000)
    #expect(clock.nanoseconds(messageByteCounts: [560, 30]) == 51_562_500)
    #expect(BoardClock(megahertz: 1, bitsPerSecond: 1_000_000).nanoseconds(messageByteCounts: []) == 0)
  }

  @Test func `progress has an estimate that is never nothing`() {
    #expect(BenchProgress.text("proofs", 50, of: 200, nanoseconds: 1_000_000_000) == "50 of 200 proofs, about 3 s left")
    #expect(BenchProgress.text("proofs", 199, of: 200, nanoseconds: 1) == "199 of 200 proofs, about 1 s left")
  }
}
