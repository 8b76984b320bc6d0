import Glibc
import HoldfastCore
import HoldfastOpenSSL

/// A secret input of a verb: a file, or standard input for `-`.
enum SecretInput {
  /// Reads the whole input, at most `limit` bytes.
  ///
  /// `option` is the option that named the file. If there is no such file, the message does not repeat its name,
  /// because it may be the secret.
  static func read(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    var bytes = try Input.read(path, limit: limit) { error in
      guard let option else { return nil }
      switch error.kind {
      case .notFound, .notDirectory, .other(ENAMETOOLONG), .other(EINVAL):
        return Failure(
          .malformed, "\(option): there is no such file",
          hint: "\(option) expects the name of a file, or - for standard input, but never the secret itself")
      default: return nil
      }
    }
    let secret = SecretBytes(copying: bytes.span)
    var span = bytes.mutableSpan
    wipe(&span)
    return secret
  }

  /// Reads the whole input without the newline at its end.
  static func readLine(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    let whole = try read(path, of: option, limit: limit)
    var end = whole.count
    if end > 0, whole.bytes[end - 1] == 0x0a {
      end -= 1
      if end > 0, whole.bytes[end - 1] == 0x0d { end -= 1 }
    }
    return SecretBytes(copying: whole.bytes.extracting(0..<end))
  }

  /// Returns the name of the input for messages.
  static func name(_ path: String) -> String { path == "-" ? "standard input" : path }
}

extension SecretInput {
  /// Reads the first line of a file or the next line of standard input, so that standard input can supply several
  /// secrets.
  static func nextLine(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    guard path == "-" else { return try readLine(path, of: option, limit: limit) }
    var line = SecretBytes(zeros: limit)
    var count = 0
    while true {
      var byte: UInt8 = 0
      let result = unsafe Glibc.read(STDIN_FILENO, &byte, 1)
      if result < 0 && errno == EINTR { continue }
      guard result >= 0 else { throw Failure(.malformed, "standard input cannot be read") }
      if result == 0 || byte == 0x0a { break }
      guard count < limit else { throw Failure(.malformed, "a line of standard input is too long") }
      var bytes = line.mutableBytes
      bytes[count] = byte
      count += 1
    }
    if count > 0, line.bytes[count - 1] == 0x0d { count -= 1 }
    return SecretBytes(copying: line.bytes.extracting(first: count))
  }

  /// Reads everything from an open file descriptor that another program passed on.
  static func read(descriptor: Int32, limit: Int) throws(Failure) -> SecretBytes {
    var secret = SecretBytes(zeros: limit + 1)
    var count = 0
    while count <= limit {
      var bytes = secret.mutableBytes
      let result = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Glibc.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
      }
      if result < 0 && errno == EINTR { continue }
      guard result >= 0 else { throw Failure(.malformed, "file descriptor \(descriptor) cannot be read") }
      if result == 0 { break }
      count += result
    }
    return SecretBytes(copying: secret.bytes.extracting(first: count))
  }

  /// Reads the first line of a file. For `-`, reads a hidden answer if standard input is a terminal, and otherwise its
  /// next line.
  static func lineOrAnswer(
    _ path: String, of option: String, question: String, limit: Int
  ) throws(Failure) -> SecretBytes {
    guard path == "-" && isatty(STDIN_FILENO) == 1 else { return try nextLine(path, of: option, limit: limit) }
    return try SecretPrompt.ask(question, option: "a file")
  }
}

/// A question to the user on the terminal, which does not show the answer.
enum SecretPrompt {
  /// The largest answer, in bytes.
  private static let maximumByteCount = 1024

  /// Whether there is a terminal for the question.
  static var isPossible: Bool {
    guard let terminal = Terminal() else { return false }
    _ = consume terminal
    return true
  }

  /// Returns the line that the user types, without its end. `option` is the alternative if there is no terminal.
  static func ask(_ question: String, option: String) throws(Failure) -> SecretBytes {
    guard let terminal = Terminal() else {
      throw Failure(.usage, "there is no terminal to ask for the \(question)", hint: "use \(option)")
    }
    terminal.write("\(question): ")
    guard let held = HeldEcho(terminal) else { throw Failure(.fault, "the terminal's echo cannot be turned off") }
    var line = Secret<1024>()
    let count = line.withMutableBytes { terminal.readLine(into: &$0) }
    held.release(terminal)
    terminal.write("\n")
    guard let count else { throw Failure.interrupted }
    guard count <= maximumByteCount else { throw Failure(.malformed, "the \(question) is too long") }
    return line.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
  }

  /// Waits for the user to press Enter if there is a terminal.
  static func awaitEnter(_ text: String) throws(Failure) {
    guard let terminal = Terminal() else { return }
    terminal.write(text)
    var line = Secret<1024>()
    guard line.withMutableBytes({ terminal.readLine(into: &$0) }) != nil else { throw Failure.interrupted }
  }
}

/// A question to the user on the terminal, before something that cannot be undone.
enum Confirmation {
  /// Returns the user's answer, at most 64 bytes. `hint` says what to do without a terminal.
  static func answer(to question: String, otherwise hint: String) throws(Failure) -> String {
    guard let terminal = Terminal() else {
      throw Failure(.usage, "there is no terminal to ask for an answer", hint: hint)
    }
    terminal.write("\(question.printable): ")
    var line = Secret<64>()
    guard let count = line.withMutableBytes({ terminal.readLine(into: &$0) }) else { throw Failure.interrupted }
    return line.withBytes { bytes in
      String(decoding: (0..<min(count, bytes.count)).map { bytes[$0] }, as: UTF8.self)
    }
  }

  /// Asks until the user has typed an answer, and throws unless it is `word`.
  static func ask(_ text: String, word: String) throws(Failure) {
    guard let terminal = Terminal() else {
      throw Failure(
        .usage, "there is no terminal to ask for a confirmation", hint: "use --yes to remove it without a question")
    }
    terminal.write("\(text.printable); type \(word) to go on: ")
    var line = Secret<64>()
    guard let count = line.withMutableBytes({ terminal.readLine(into: &$0) }) else { throw Failure.interrupted }
    let isSame = line.withBytes {
      count == word.utf8.count && $0.extracting(first: count).elementsEqual(Array(word.utf8).span)
    }
    guard isSame else { throw Failure(.denied, "nothing was removed") }
  }
}

/// The controlling terminal of this process, independent of its standard streams.
private struct Terminal: ~Copyable {
  let number: Int32

  init?() {
    number = unsafe open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard number >= 0 else { return nil }
  }

  deinit {
    close(number)
  }

  func write(_ text: String) { _ = Console.write(Array(text.utf8)[...], to: number) }

  /// Reads a line and returns its length in bytes, without its end; only the first bytes fit in `bytes`. Returns nil if
  /// the terminal was closed or a signal that ends the process is pending.
  func readLine(into bytes: inout MutableSpan<UInt8>) -> Int? {
    var count = 0
    while true {
      var waiting = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      let ready = unsafe poll(&waiting, 1, 100)
      if HeldEcho.isSignalWaiting { return nil }
      guard ready > 0 else {
        if ready < 0 && errno != EINTR { return nil }
        continue
      }
      var byte: UInt8 = 0
      guard unsafe read(number, &byte, 1) == 1 else { return nil }
      if byte == 0x0a || byte == 0x0d { return count }
      if count < bytes.count { bytes[count] = byte }
      count += 1
    }
  }
}

/// A terminal with its echo off. Signals that would end the process are blocked meanwhile, so that the echo is always
/// restored.
private struct HeldEcho: ~Copyable {
  private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]
  private let settings: termios
  private let mask: sigset_t

  init?(_ terminal: borrowing Terminal) {
    var settings = termios()
    guard unsafe tcgetattr(terminal.number, &settings) == 0 else { return nil }
    var held = sigset_t()
    var mask = sigset_t()
    unsafe sigemptyset(&held)
    for signal in Self.signals { unsafe sigaddset(&held, signal) }
    unsafe pthread_sigmask(SIG_BLOCK, &held, &mask)
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    guard unsafe tcsetattr(terminal.number, TCSAFLUSH, &silent) == 0 else {
      unsafe pthread_sigmask(SIG_SETMASK, &mask, nil)
      return nil
    }
    self.settings = settings
    self.mask = mask
  }

  /// Whether one of these signals is pending.
  static var isSignalWaiting: Bool {
    var waiting = sigset_t()
    guard unsafe sigpending(&waiting) == 0 else { return false }
    return signals.contains { unsafe sigismember(&waiting, $0) == 1 }
  }

  /// Restores the echo and unblocks the signals. A pending signal ends the process here.
  consuming func release(_ terminal: borrowing Terminal) {
    var (settings, mask) = (settings, mask)
    unsafe tcsetattr(terminal.number, TCSAFLUSH, &settings)
    unsafe pthread_sigmask(SIG_SETMASK, &mask, nil)
  }
}
