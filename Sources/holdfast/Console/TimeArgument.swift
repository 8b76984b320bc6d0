import HoldfastCore
import HoldfastText

extension Timestamp {
  /// Reads a time of the command line: a date with its time of day as RFC 3339 writes it, or Unix seconds.
  ///
  /// - Parameters:
  ///   - option: the option that it is given to, for the message.
  ///   - word: what else the option takes.
  /// - Throws: `usage` for anything else, and for a time after 2^53 - 1 seconds.
  init(argument text: String, of option: String, orElse word: String? = nil) throws(Failure) {
    if let time = Timestamp(parsing: text) {
      self = time
    } else if let seconds = decimal(text), seconds <= maximumInteger {
      self.init(unixSeconds: seconds)
    } else {
      throw Failure(
        .usage, "\(option) is a time such as 2026-11-22T18:00:00Z, or Unix seconds\(word.map { ", or \($0)" } ?? "")",
        hint: "date --utc +%FT%TZ prints the time as it is now, and date +%s in seconds")
    }
  }
}
