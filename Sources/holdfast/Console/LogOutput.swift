import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL
import HoldfastText

/// A line of the log of a verb that serves.
struct LogLine {
  /// What kind of line it is, in one word.
  var event: String
  /// What happened, for people.
  var sentence: String
  /// The rest, for people as well as for programs.
  var fields: [(String, NamedValue)] = []
  /// Values that only programs get, because the sentence tells people.
  var members: [(String, NamedValue)] = []

  /// A line for people. Each value is quoted, so that none can pass for a field or a line.
  func text(unixSeconds: UInt64?) -> String {
    let time = unixSeconds.map { "\(Timestamp(unixSeconds: $0)) " } ?? ""
    return "holdfast: \(time)\(sentence.printable)" + fields.map { "  \($0)=\($1.line)" }.joined()
  }

  /// One JSON object.
  func json(unixSeconds: UInt64?) -> JSONValue {
    let time = unixSeconds.map { JSONValue.integer($0) } ?? .null
    // The event says already that it is a warning.
    let text = String(sentence.trimmingPrefix("warning: "))
    return .object(
      [("time", time), ("event", .string(event)), ("text", .string(text))]
        + (members + fields).map { ($0, $1.json) })
  }
}

/// Where the log of a verb that serves goes: text to standard error, or JSON lines to standard output.
final class LogOutput: Sendable {
  private let notices: NoticePipe
  private let isJSON: Bool

  /// nil when the process has no descriptors left.
  init?(json: Bool) {
    guard let notices = NoticePipe(to: json ? .output : .error) else { return nil }
    (self.notices, isJSON) = (notices, json)
  }

  /// Writes a line, from any thread, and never waits for its reader.
  func write(_ line: LogLine) {
    let lostCount = notices.takeLostCount()
    if lostCount > 0 {
      let lines = lostCount == 1 ? "a line" : "\(lostCount) lines"
      add(
        LogLine(
          event: "lines-lost", sentence: "warning: \(lines) of this log found no reader, and were lost",
          members: [("lines", .number(UInt64(lostCount)))]))
    }
    add(line)
  }

  private func add(_ line: LogLine) {
    let now = SystemClock().unixSeconds()
    var text = written(line, unixSeconds: now)
    if text.utf8.count > NoticePipe.maximumLineByteCount {
      // Only sentences are long, a policy of very many commands for instance.
      var shorter = line
      shorter.sentence = line.sentence.prefix(500) + " …"
      text = written(shorter, unixSeconds: now)
    }
    notices.add(text)
  }

  private func written(_ line: LogLine, unixSeconds: UInt64?) -> String {
    guard isJSON else { return line.text(unixSeconds: unixSeconds) }
    return String(decoding: line.json(unixSeconds: unixSeconds).compact(), as: UTF8.self)
  }

  /// Writes a line that has nothing but a sentence.
  func note(_ event: String, _ sentence: String) { write(LogLine(event: event, sentence: sentence)) }

  /// Something is not as it should be.
  func warn(_ sentence: String) {
    write(LogLine(event: "warning", sentence: "warning: \(sentence)"))
  }

  /// Ends it, once, after the last line: waits until all were carried on, at most so long.
  func finish(withinMilliseconds milliseconds: CInt) { notices.finish(withinMilliseconds: milliseconds) }
}
