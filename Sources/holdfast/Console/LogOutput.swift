import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// A line in the log of a verb that serves.
struct LogLine {
  /// The kind of the line, in one word.
  var event: String
  /// The event as a sentence for people.
  var sentence: String
  /// The other values, for people and programs.
  var fields: [(String, NamedValue)] = []
  /// The values that only programs get, because the sentence contains them.
  var members: [(String, NamedValue)] = []

  /// Whether the line is a warning, as its sentence says.
  private var isWarning: Bool { sentence.hasPrefix("warning: ") }

  /// Formats the line for people. Each value is quoted, so that none can be mistaken for a field or a line.
  func text(unixSeconds: UInt64?) -> String {
    let time = unixSeconds.map { "\(Timestamp(unixSeconds: $0)) " } ?? ""
    let priority = (isWarning ? Console.Priority.warning : .information).prefix
    return "\(priority)holdfast: \(time)\(sentence.printable)" + fields.map { "  \($0)=\($1.line)" }.joined()
  }

  /// Formats the line as one JSON object.
  func json(unixSeconds: UInt64?) -> JSONValue {
    let time = unixSeconds.map { JSONValue.integer($0) } ?? .null
    // The event already marks the line as a warning. (`trimmingPrefix` would link Swift's regular expressions, 1.2 MB.)
    let text = isWarning ? String(sentence.dropFirst("warning: ".count)) : sentence
    return .object(
      [("time", time), ("event", .string(event)), ("text", .string(text))]
        + (members + fields).map { ($0, $1.json) })
  }
}

/// The log of a verb that serves: text to standard error, or JSON lines to standard output.
final class LogOutput: Sendable {
  private let notices: NoticePipe
  private let isJSON: Bool

  /// Starts the log; nil if the process has no file descriptors left.
  init?(json: Bool) {
    guard let notices = NoticePipe(to: json ? .output : .error) else { return nil }
    (self.notices, isJSON) = (notices, json)
  }

  /// Writes a line from any thread, without ever waiting for a reader.
  func write(_ line: LogLine) {
    let lostCount = notices.takeLostCount()
    if lostCount > 0 {
      let lines = lostCount == 1 ? "a line" : "\(lostCount) lines"
      add(
        LogLine(
          event: "lines-lost", sentence: "warning: \(lines) of this log were lost, because nobody read them",
          members: [("lines", .number(UInt64(lostCount)))]))
    }
    add(line)
  }

  private func add(_ line: LogLine) {
    let now = SystemClock().unixSeconds()
    var text = written(line, unixSeconds: now)
    if text.utf8.count > NoticePipe.maximumLineByteCount {
      // Only sentences can be long, for instance about a policy with very many commands.
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

  /// Writes a line that consists only of a sentence.
  func note(_ event: String, _ sentence: String) { write(LogLine(event: event, sentence: sentence)) }

  /// Writes a warning.
  func warn(_ sentence: String) {
    write(LogLine(event: "warning", sentence: "warning: \(sentence)"))
  }

  /// Ends the log after the last line; call it once. Waits until all lines are delivered, but at most this time.
  func finish(withinMilliseconds milliseconds: CInt) { notices.finish(withinMilliseconds: milliseconds) }
}

/// A rate limit for log lines that strangers can cause. Of each kind, a number of lines is written per minute; further
/// ones are only counted.
///
/// The limit applies to each kind separately, so that a flood of one kind does not hide another. The kinds are the
/// fixed words of the program: a peer cannot create a new one.
final class LineLimit<Time: Clock & Sendable>: Sendable {
  private let clock: Time
  private let count: Int
  private let kinds = Mutex<[String: Kind]>([:])

  private struct Kind {
    /// The beginning of the present minute, in monotonic milliseconds.
    var since: UInt64
    var writtenCount = 0
    var leftOutCount: UInt64 = 0
  }

  private static var intervalMilliseconds: UInt64 { 60_000 }

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - count: The largest number of lines of a kind per minute, in addition to the one that counts the others.
  ///   - clock: The clock that measures the minutes.
  init(linesAMinute count: Int, clock: Time) {
    (self.count, self.clock) = (count, clock)
  }

  /// Returns the lines to write for `line`: none or the line, preceded by the count of omitted lines if one is due.
  func admitted(_ line: LogLine) -> [LogLine] {
    let now = clock.monotonicMilliseconds()
    return kinds.withLock { kinds in
      let leftOut = Self.renew(&kinds, line.event, at: now)
      guard kinds[line.event]!.writtenCount < count else {
        kinds[line.event]!.leftOutCount += 1
        return leftOut
      }
      kinds[line.event]!.writtenCount += 1
      return leftOut + [line]
    }
  }

  /// Returns the counts of omitted lines that were not yet reported, for each kind whose minute has passed, or for all
  /// kinds at the end.
  func due(isEnding: Bool = false) -> [LogLine] {
    let now = clock.monotonicMilliseconds()
    return kinds.withLock { kinds in
      kinds.keys.sorted().flatMap { Self.renew(&kinds, $0, at: now, isForced: isEnding) }
    }
  }

  /// Starts the next minute of a kind if the last one has passed.
  private static func renew(
    _ kinds: inout [String: Kind], _ event: String, at now: UInt64, isForced: Bool = false
  ) -> [LogLine] {
    guard let kind = kinds[event] else {
      kinds[event] = Kind(since: now)
      return []
    }
    guard isForced || now >= kind.since + intervalMilliseconds else { return [] }
    kinds[event] = Kind(since: now)
    guard kind.leftOutCount > 0 else { return [] }
    let seconds = (now - kind.since) / 1000
    return [
      LogLine(
        event: "left-out", sentence: "\(kind.leftOutCount) more lines of '\(event)' were omitted in \(seconds) s",
        members: [("of", .word(event)), ("lines", .number(kind.leftOutCount)), ("seconds", .number(seconds))])
    ]
  }
}

/// A pipe for log lines that peers cause, so that a writer never waits for a reader.
///
/// A separate thread delivers the lines from the pipe. A line that finds the pipe full is lost, which means that 64 KiB
/// are unread; the number of lost lines is the next line. poll(2) would not suffice: a terminal with room for ten bytes
/// is ready, but blocks a writer of eleven.
final class NoticePipe: Sendable {
  /// The standard stream to which the lines go.
  enum Target {
    case output, error
  }

  /// The largest line, in bytes without its end. Up to 4096 bytes are written atomically. Source: pipe(7).
  static let maximumLineByteCount = 4095

  /// The end for writing; nil after the pipe has ended.
  private let writeEnd: Mutex<CInt?>
  /// A descriptor that becomes readable when the thread has ended.
  private let done: CInt
  private let lostCount = Atomic<Int>(0)

  /// Starts the thread; nil if the process has no file descriptors left.
  init?(to target: Target) {
    guard let lines = NoticePipe.makePipe() else { return nil }
    guard let done = NoticePipe.makePipe() else {
      close(lines.read)
      close(lines.write)
      return nil
    }
    _ = fcntl(lines.write, F_SETFL, O_NONBLOCK)
    writeEnd = Mutex(lines.write)
    self.done = done.read
    let stream = target == .output ? STDOUT_FILENO : STDERR_FILENO
    Thread.detach {
      NoticePipe.carry(from: lines.read, to: stream)
      close(lines.read)
      close(done.write)
    }
  }

  /// Adds a line from any thread. After ``finish(withinMilliseconds:)`` it does nothing. A line that is too long is
  /// lost.
  func add(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    writeEnd.withLock { writeEnd in
      guard let writeEnd else { return }
      let isShort = bytes.count <= NoticePipe.maximumLineByteCount + 1
      let count = isShort ? unsafe write(writeEnd, bytes, bytes.count) : 0
      if count != bytes.count { lostCount.add(1, ordering: .relaxed) }
    }
  }

  /// Returns the number of lines lost since the last call.
  func takeLostCount() -> Int { lostCount.exchange(0, ordering: .relaxed) }

  /// Ends the pipe after the last line; call it once. Waits until all lines are delivered, but at most this time.
  func finish(withinMilliseconds milliseconds: CInt) {
    writeEnd.withLock { writeEnd in
      if let writeEnd { close(writeEnd) }
      writeEnd = nil
    }
    var waited = pollfd(fd: done, events: CShort(POLLIN), revents: 0)
    _ = unsafe poll(&waited, 1, milliseconds)
  }

  private static func carry(from source: CInt, to target: CInt) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe read(source, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      // If the reader has ended, the lines are lost, but the pipe continues to be emptied.
      _ = Console.write(buffer[..<count], to: target)
    }
  }

  private static func makePipe() -> (read: CInt, write: CInt)? {
    var ends: (CInt, CInt) = (-1, -1)
    let result = unsafe withUnsafeMutableBytes(of: &ends) {
      unsafe pipe($0.baseAddress!.assumingMemoryBound(to: CInt.self))
    }
    guard result == 0 else { return nil }
    for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends.0, ends.1)
  }
}
