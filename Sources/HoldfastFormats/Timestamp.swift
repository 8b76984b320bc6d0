/// A second of universal time, counted from 1970-01-01T00:00:00Z and written as a date.
///
/// Source: RFC 3339 §5.6. Its years have four digits. A later year, up to 285428751 for 2^53 - 1 seconds, is written in the
/// expanded representation of ISO 8601: a plus sign and all of its digits, `+10000-01-01T00:00:00Z`.
package struct Timestamp: Sendable, Equatable {
  /// The seconds since 1970-01-01T00:00:00Z.
  package let unixSeconds: UInt64

  /// Creates the time `unixSeconds` after 1970-01-01T00:00:00Z.
  package init(unixSeconds: UInt64) {
    self.unixSeconds = unixSeconds
  }

  /// Parses `2026-11-22T18:13:28Z`, or the same with an offset from universal time, `2026-11-22T19:13:28+01:00`.
  ///
  /// As RFC 3339 allows, the letters may be lower-case, and a space may replace the `T`. Fractions of a second and leap seconds
  /// are rejected, because the audit log has neither.
  ///
  /// - Returns: nil for any other text, a date that does not exist, and a time before 1970.
  package init?(parsing text: String) {
    var digits = DigitReader(text)
    guard let year = digits.number(4), digits.take("-"), let month = digits.number(2), digits.take("-"),
      let day = digits.number(2), digits.take("Tt "), let hour = digits.number(2), digits.take(":"),
      let minute = digits.number(2), digits.take(":"), let second = digits.number(2),
      let offset = digits.offset(), digits.isAtEnd,
      1...12 ~= month, 1...CalendarDay.dayCount(ofMonth: month, year: year) ~= day, hour < 24, minute < 60, second < 60
    else { return nil }
    let days = CalendarDay(year: year, month: month, day: day).daysSince1970
    let seconds = days * 86_400 + (hour * 60 + minute) * 60 + second - offset
    guard let unixSeconds = UInt64(exactly: seconds) else { return nil }
    self.unixSeconds = unixSeconds
  }
}

extension Timestamp: CustomStringConvertible {
  /// The date and the time of day, always in universal time, such as `2026-11-22T18:13:28Z`.
  package var description: String {
    let day = CalendarDay(daysSince1970: Int64(unixSeconds / 86_400))
    let second = Int64(unixSeconds % 86_400)
    let year = (day.year > 9999 ? "+" : "") + padded(day.year, 4)
    let time = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }.joined(separator: ":")
    return "\(year)-\(padded(day.month, 2))-\(padded(day.day, 2))T\(time)Z"
  }

  private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
  }
}

/// A day of the Gregorian calendar.
///
/// The count begins at 1 March of the year 0, so that the leap day is the last day of a year. An era is 400 years of 146,097
/// days.
private struct CalendarDay {
  let year: Int64
  let month: Int64
  let day: Int64

  private static let daysOfEra: Int64 = 146_097
  /// The number of days from 0000-03-01 to 1970-01-01.
  private static let daysBefore1970: Int64 = 719_468

  init(year: Int64, month: Int64, day: Int64) {
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// Converts a count of days, which must not be negative.
  init(daysSince1970: Int64) {
    let days = daysSince1970 + Self.daysBefore1970
    let dayOfEra = days % Self.daysOfEra
    // Every fourth year has a leap day, except the hundredth; the last year of the era has one nevertheless.
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    // From March on, every five months have 153 days.
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = days / Self.daysOfEra * 400 + yearOfEra + (month <= 2 ? 1 : 0)
  }

  var daysSince1970: Int64 {
    // 400 additional years keep the number of the era from being negative; their days are subtracted below.
    let yearFromMarch = (month <= 2 ? year - 1 : year) + 400
    let (era, yearOfEra) = yearFromMarch.quotientAndRemainder(dividingBy: 400)
    let monthFromMarch = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return (era - 1) * Self.daysOfEra + dayOfEra - Self.daysBefore1970
  }

  static func dayCount(ofMonth month: Int64, year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// A reader of fixed numbers of ASCII digits and single characters.
private struct DigitReader {
  private var rest: Substring.UTF8View

  init(_ text: String) {
    rest = text[...].utf8
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func number(_ width: Int) -> Int64? {
    let digits = rest.prefix(width)
    guard digits.count == width, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    rest = rest.dropFirst(width)
    return digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
  }

  /// Reads one of the given characters, and returns whether it did.
  mutating func take(_ characters: StaticString) -> Bool {
    guard let first = rest.first, characters.withUTF8Buffer({ unsafe $0.contains(first) }) else { return false }
    rest = rest.dropFirst()
    return true
  }

  /// Reads an offset, and returns by how many seconds the time is ahead of universal time.
  mutating func offset() -> Int64? {
    if take("Zz") { return 0 }
    let sign: Int64 = rest.first == UInt8(ascii: "-") ? -1 : 1
    guard take("+-"), let hour = number(2), take(":"), let minute = number(2), hour < 24, minute < 60 else {
      return nil
    }
    return sign * (hour * 60 + minute) * 60
  }
}
