import Glibc
import HoldfastFormats
import HoldfastLinux
import Synchronization

/// The output of a verb: results on standard output, everything else on standard error.
///
/// Rules: messages begin with `holdfast:` and have no full stop; a `hint:` states what to do; warnings begin with
/// `warning:`.
enum Console {
  /// Prints a line of a result.
  static func result(_ text: String) { writeResult(text.printable + "\n") }

  /// Prints a line of a result whose values are already quoted.
  static func result(quoted line: String) { writeResult(line + "\n") }

  /// Prints a result as one JSON object. The warnings since the last one become its member `warnings`.
  static func result(_ value: JSONValue) {
    var value = value
    if let members = value.members {
      let warnings = pendingWarnings.withLock { warnings in
        defer { warnings = [] }
        return warnings
      }
      if !warnings.isEmpty { value = .object(members + [("warnings", .array(warnings))]) }
    }
    writeResult(String(decoding: value.compact(), as: UTF8.self) + "\n")
  }

  private static let pendingWarnings = Mutex<[JSONValue]>([])
  /// The number of warnings that wait for a result at most, for verbs that run for long without one.
  private static let pendingWarningLimit = 64

  /// Prints complete lines of a result unchanged.
  static func result(lines: Span<UInt8>) {
    var text: [UInt8] = []
    for index in lines.indices { text.append(lines[index]) }
    let error = write(text[...], to: STDOUT_FILENO)
    if error != 0 { _ = firstLoss.compareExchange(expected: 0, desired: error, ordering: .relaxed) }
  }

  /// Writes a secret to standard output, without an end of line, and without a copy in memory that is not wiped.
  static func result(secret: Span<UInt8>) {
    var rest = secret
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        _ = firstLoss.compareExchange(expected: 0, desired: count < 0 ? errno : EIO, ordering: .relaxed)
        return
      }
      rest = rest.extracting(droppingFirst: count)
    }
  }

  /// Prints a message in addition to the result.
  static func note(_ text: String) { write("holdfast: \(text)", .information) }

  static func warning(_ text: String, _ code: WarningCode = .general) {
    write("holdfast: warning: \(text)", .warning)
    pendingWarnings.withLock { warnings in
      if warnings.count < pendingWarningLimit { warnings.append(code.json(text)) }
    }
  }

  /// Reports a failure. `subject` names the item that failed, if there are several.
  static func report(_ failure: Failure, of subject: String? = nil) {
    write("holdfast: " + (subject.map { "\($0): " } ?? "") + failure.message, .error)
    if let hint = failure.hint { self.hint(hint) }
  }

  /// Reports a failure. With `--json`, also prints it as the result.
  static func report(_ failure: Failure, isJSON: Bool) {
    report(failure)
    if isJSON && !failure.hasResult { result(failure.json) }
  }

  static func warnOfSwap() {
    warning("keys may be written to the disk: there is swap space, and a limit prevents locking memory")
    hint("run swapoff -a, or raise the limit: LimitMEMLOCK=infinity for a service, ulimit -l unlimited in a shell")
  }

  private static func hint(_ text: String) { write("hint: \(text)", .information) }

  private static func write(_ text: String, _ priority: Priority) {
    _ = write(priority.prefix + text.printable + "\n", to: STDERR_FILENO)
  }

  /// The importance of a line on standard error. Source: the numbers of syslog(3), written as sd-daemon(3) says.
  enum Priority: Int {
    case error = 3
    case warning = 4
    case information = 6

    /// The beginning of a line: `<4>` if standard error goes to the journal, nothing otherwise.
    var prefix: String { Self.isJournal ? "<\(rawValue)>" : "" }

    private static let isJournal = ServiceManager.isJournal(STDERR_FILENO)
  }

  /// Whether standard error is a terminal, on which colours and overwriting are possible.
  static let isTerminal = isatty(STDERR_FILENO) == 1
  static let isResultTerminal = isatty(STDOUT_FILENO) == 1
  static let hasColour = unsafe isResultTerminal && getenv("NO_COLOR") == nil

  /// The `errno` of the first lost result; 0 if none was lost.
  static var lostResult: Int32 { firstLoss.load(ordering: .relaxed) }

  private static let firstLoss = Atomic<Int32>(0)

  private static func writeResult(_ text: String) {
    let error = write(text, to: STDOUT_FILENO)
    if error != 0 { _ = firstLoss.compareExchange(expected: 0, desired: error, ordering: .relaxed) }
  }

  /// Writes all of `text`. Returns the `errno` that stopped it, or 0.
  private static func write(_ text: String, to descriptor: Int32) -> Int32 {
    write(Array(text.utf8)[...], to: descriptor)
  }

  /// Writes all of `bytes`. Returns the `errno` that stopped it, or 0.
  static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int32 {
    var bytes = bytes
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return count < 0 ? errno : EIO }
      bytes = bytes.dropFirst(count)
    }
    return 0
  }
}

/// The three standard streams, made safe regardless of the state in which the process received them.
enum StandardStreams {
  /// Prepares the streams. Call it before opening any file.
  ///
  /// If the caller closed a stream, the next file to be opened, such as a ledger, would get its number, and messages
  /// would be written into it. Therefore each closed stream is replaced by one that refuses all use. A broken pipe or a
  /// file size limit becomes an ordinary error instead of a signal.
  static func prepare() {
    for (stream, uselessMode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(stream, F_GETFD) < 0 {
      _ = unsafe open("/dev/null", uselessMode)
    }
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }
}

/// The input of a verb: a file, or standard input for `-`.
enum Input {
  /// Reads the whole input, at most `limit` bytes. `explain` may replace the failure for an error.
  static func read(
    _ path: String, limit: Int, explain: (FileError) -> Failure? = { _ in nil }
  ) throws(Failure) -> [UInt8] {
    guard path != "-" else { return try standardInput(limit: limit) }
    do throws(FileError) { return try Files.readFile(at: path, limit: limit) } catch {
      let hint: String? =
        switch error.kind {
        case .notFound: "is the name right? A relative name starts from the current folder; - is standard input"
        case .notRegular: "to read from a pipe, use - and connect standard input"
        default: nil
        }
      throw explain(error) ?? Failure(error, hint: hint)
    }
  }

  private static func standardInput(limit: Int) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Failure(.malformed, "standard input cannot be read") }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else { throw Failure(.malformed, "standard input is too long") }
    }
  }
}
