import HoldfastFormats
import Testing

struct TimestampTests {
  /// Seconds and dates; those from 2000 on are what date(1) prints.
  static let known: [(UInt64, String)] = [
    (0, "1970-01-01T00:00:00Z"),
    (86_399, "1970-01-01T23:59:59Z"),
    (68_169_599, "1972-02-28T23:59:59Z"),
    (68_169_600, "1972-02-29T00:00:00Z"),
    (68_256_000, "1972-03-01T00:00:00Z"),
    (951_782_400, "2000-02-29T00:00:00Z"),
    (951_868_800, "2000-03-01T00:00:00Z"),
    (978_220_800, "2000-12-31T00:00:00Z"),
    (978_307_199, "2000-12-31T23:59:59Z"),
    (1_795_363_453, "2026-11-22T16:04:13Z"),
    (2_147_483_648, "2038-01-19T03:14:08Z"),
    (4_107_542_399, "2100-02-28T23:59:59Z"),
    (4_107_542_400, "2100-03-01T00:00:00Z"),
    (4_294_967_296, "2106-02-07T06:28:16Z"),
    (13_574_563_200, "2400-02-29T00:00:00Z"),
    (253_402_300_799, "9999-12-31T23:59:59Z"),
  ]

  @Test(arguments: known) func `a second is written as its date`(seconds: UInt64, text: String) {
    #expect(Timestamp(unixSeconds: seconds).description == text)
  }

  @Test(arguments: known) func `a date is read as its second`(seconds: UInt64, text: String) {
    #expect(Timestamp(parsing: text)?.unixSeconds == seconds)
  }

  @Test func `years after 9999 have a plus sign and all of their digits`() {
    #expect(Timestamp(unixSeconds: 253_402_300_800).description == "+10000-01-01T00:00:00Z")
    #expect(Timestamp(unixSeconds: (1 << 53) - 1).description == "+285428751-11-12T07:36:31Z")
    #expect(Timestamp(parsing: "+10000-01-01T00:00:00Z") == nil)
  }

  @Test func `the first second of each day of 800 years comes back, and days follow each other`() throws {
    var previous = ""
    for day in UInt64(0)..<292_194 {
      let text = Timestamp(unixSeconds: day * 86_400).description
      #expect(text > previous)
      #expect(Timestamp(parsing: text)?.unixSeconds == day * 86_400)
      previous = text
    }
    #expect(previous == "2769-12-31T00:00:00Z")
  }

  @Test(
    arguments: [
      ("2026-11-22T17:04:13+01:00", 1_795_363_453), ("2026-11-22T10:34:13-05:30", 1_795_363_453),
      ("2026-11-23T15:03:13+22:59", 1_795_363_453), ("2026-11-22 16:04:13z", 1_795_363_453),
      ("2026-11-22t16:04:13-00:00", 1_795_363_453), ("1970-01-01T01:00:00+01:00", 0),
    ] as [(String, UInt64)]) func `an offset is taken off`(text: String, seconds: UInt64)
  {
    #expect(Timestamp(parsing: text)?.unixSeconds == seconds)
  }

  @Test(
    arguments: [
      "", "now", "1795363453", "2026-11-22", "2026-11-22T16:04Z", "2026-11-22T16:04:13", "2026-11-22T16:04:13.5Z",
      "2026-11-22T16:04:60Z", "2026-11-22T24:00:00Z", "2026-11-22T16:60:13Z", "2026-13-22T16:04:13Z",
      "2026-00-22T16:04:13Z", "2026-11-31T16:04:13Z", "2026-11-00T16:04:13Z", "2100-02-29T00:00:00Z",
      "2026-02-29T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:59:59+01:00", "2026-11-22T16:04:13Z ",
      " 2026-11-22T16:04:13Z", "2026-11-22T16:04:13+1:00", "2026-11-22T16:04:13+0100", "2026-11-22T16:04:13+24:00",
      "2026-11-22T16:04:13+01:60", "+026-11-22T16:04:13Z", "2026/11/22T16:04:13Z", "2026-11-22T١٦:04:13Z",
      "2026-1-22T16:04:13Z",
    ]) func `anything else is no time`(text: String)
  {
    #expect(Timestamp(parsing: text) == nil)
  }
}
