import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

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

/// A bound for lines of a log that strangers cause: of each kind, so many are written a minute, and the others are counted.
///
/// The bound is kept by kind, so that a flood of one kind does not hide another. There are as many kinds as the program has words
/// for them: nothing that a peer sends makes a new one.
final class LineLimit<Time: Clock & Sendable>: Sendable {
  private let clock: Time
  private let count: Int
  private let kinds = Mutex<[String: Kind]>([:])

  private struct Kind {
    /// Monotonic milliseconds.
    var since: UInt64
    var writtenCount = 0
    var leftOutCount: UInt64 = 0
  }

  private static var intervalMilliseconds: UInt64 { 60_000 }

  /// - Parameters:
  ///   - count: how many lines of a kind there are in a minute at most, besides the one that counts the others.
  ///   - clock: tells when a minute has passed.
  init(linesAMinute count: Int, clock: Time) {
    (self.count, self.clock) = (count, clock)
  }

  /// What is to be written of `line`: nothing, the line, or before it how many were left out.
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

  /// How many lines were left out and not told of; of every kind, once its minute has passed, or at once.
  func due(isEnding: Bool = false) -> [LogLine] {
    let now = clock.monotonicMilliseconds()
    return kinds.withLock { kinds in
      kinds.keys.sorted().flatMap { Self.renew(&kinds, $0, at: now, isForced: isEnding) }
    }
  }

  /// Begins a kind's next minute where the last one has passed.
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
        event: "left-out", sentence: "\(kind.leftOutCount) more lines of '\(event)' were left out in \(seconds) s",
        members: [("of", .word(event)), ("lines", .number(kind.leftOutCount)), ("seconds", .number(seconds))])
    ]
  }
}

/// Lines of a log that peers cause: whoever writes one never waits for whoever reads them.
///
/// A pipe keeps them, and a thread of its own carries them on. A line that finds the pipe full is lost: it would be 64 KiB
/// that nobody reads; how many were lost is the next line. poll(2) alone would not do, since a terminal that takes ten bytes is ready, and then holds up the
/// writer of eleven.
final class NoticePipe: Sendable {
  /// Which standard stream the lines go to.
  enum Target {
    case output, error
  }

  /// pipe(7): up to 4096 bytes, the line's end among them, are written as a whole or not at all.
  static let maximumLineByteCount = 4095

  /// nil once it has ended.
  private let writeEnd: Mutex<CInt?>
  /// Readable once the thread is done.
  private let done: CInt
  private let lostCount = Atomic<Int>(0)

  /// nil when the process has no descriptors left.
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

  /// Adds a line, from any thread; nothing after ``finish(withinMilliseconds:)``. A line that is too long is lost as well.
  func add(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    writeEnd.withLock { writeEnd in
      guard let writeEnd else { return }
      let isShort = bytes.count <= NoticePipe.maximumLineByteCount + 1
      let count = isShort ? unsafe write(writeEnd, bytes, bytes.count) : 0
      if count != bytes.count { lostCount.add(1, ordering: .relaxed) }
    }
  }

  /// How many lines were lost since it was asked for last.
  func takeLostCount() -> Int { lostCount.exchange(0, ordering: .relaxed) }

  /// Ends it, once, after the last line: waits until all were carried on, at most so long.
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
      // A reader that is gone loses its lines, and the pipe goes on being emptied.
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
