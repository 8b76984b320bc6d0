import HoldfastCore

/// A value in an audit entry or a log line.
package enum NamedValue: Sendable {
  /// Text from another party: a command, a subject, a user, a peer.
  case text(String)
  /// A fixed word of this program, or hexadecimal digits.
  case word(String)
  case number(UInt64)
  /// A time, in Unix seconds.
  case time(UInt64)
  case flag(Bool)

  /// The value for people: text in quotation marks, time as a date.
  package var line: String {
    switch self {
    case .text(let text): text.quoted
    case .word(let word): word
    case .number(let number): "\(number)"
    case .time(let seconds): "\(Timestamp(unixSeconds: seconds))"
    case .flag(let flag): "\(flag)"
    }
  }

  /// The value for programs: text unchanged, time in seconds.
  package var json: JSONValue {
    switch self {
    case .text(let text): .string(text)
    case .word(let word): .string(word)
    case .number(let number): .integer(number)
    case .time(let seconds): .integer(seconds)
    case .flag(let flag): .bool(flag)
    }
  }
}
