import Glibc
import Synchronization

/// A child process, which this process starts, waits for and ends.
struct ChildProcess {
  private let id: pid_t
  private let output: Int32

  /// The end of a child process.
  struct Ending {
    /// The exit status; nil if a signal ended the process.
    let status: Int32?
    /// The output on standard output and standard error.
    let output: String
  }

  /// Starts `arguments[0]` in this process's environment.
  init(_ arguments: [String]) throws(Failure) {
    let pipe = try Pipe()
    defer { close(pipe.writing) }
    do throws(Failure) {
      id = try RunningChildren.start { () throws(Failure) in
        try Self.spawn(arguments, output: pipe.writing)
      }
    } catch {
      close(pipe.reading)
      throw error
    }
    output = pipe.reading
  }

  /// Starts a program that writes to `output`, has no input and blocks no signals. Returns its process id.
  static func spawn(_ arguments: [String], output: Int32) throws(Failure) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var id: pid_t = 0
    let failure = unsafe withCStrings(arguments) {
      unsafe posix_spawn(&id, $0[0]!, &actions, &attributes, $0, environ)
    }
    guard failure == 0 else {
      throw Failure(.fault, "\(arguments[0]) could not be started: system error \(failure)")
    }
    return id
  }

  /// Runs a program to its end.
  static func run(_ arguments: [String]) throws(Failure) -> Ending {
    let child = try ChildProcess(arguments)
    return child.wait()
  }

  /// Waits for the process to end.
  func wait() -> Ending {
    let text = Self.readAll(output)
    return Ending(status: reap(), output: text)
  }

  /// Waits until the process prints `text` or ends. Returns whether it printed the text.
  func waitFor(_ text: String) -> Bool {
    var seen = ""
    var byte: UInt8 = 0
    while unsafe read(output, &byte, 1) == 1 {
      seen.unicodeScalars.append(Unicode.Scalar(byte))
      if seen.hasSuffix(text) { return true }
    }
    return false
  }

  /// Ends the process with SIGTERM and waits for it. Returns nil if it did not exit normally.
  @discardableResult
  func terminate() -> Int32? {
    kill(id, SIGTERM)
    _ = Self.readAll(output)
    return reap()
  }

  private func reap() -> Int32? {
    let status = RunningChildren.reap(id)
    return status & 0x7f == 0 ? status >> 8 & 0xff : nil
  }

  private static func readAll(_ descriptor: Int32) -> String {
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }
}

/// A pipe, which is closed when a program has been started.
private struct Pipe {
  let reading: Int32
  let writing: Int32

  init() throws(Failure) {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw Failure(.fault, "no file descriptors are left") }
    (reading, writing) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  }
}

/// Lends `strings` as a C array with a null pointer at its end.
private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  var pointers = unsafe strings.map { unsafe strdup($0) }
  unsafe pointers.append(nil)
  defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
  return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
}

/// The child processes that were started and not yet reaped, so that none outlives this process.
enum RunningChildren {
  private static let ids = Mutex<[pid_t]>([])

  /// Starts a child process; `spawn` returns its id.
  static func start(_ spawn: () throws(Failure) -> pid_t) throws(Failure) -> pid_t {
    try ids.withLock { (ids) throws(Failure) in
      let id = try spawn()
      ids.append(id)
      return id
    }
  }

  /// Waits for a child process to end and releases its id. Returns the status of waitpid(2).
  static func reap(_ id: pid_t) -> Int32 {
    var information = unsafe siginfo_t()
    // The id is not reused until it has left the list.
    while unsafe waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    return ids.withLock { ids in
      ids.removeAll { $0 == id }
      return wait(id)
    }
  }

  /// Ends all child processes, runs `cleanUp` and ends this process. Meanwhile, any thread that starts or reaps one
  /// waits forever.
  static func endAll(thenExit status: ExitStatus, _ cleanUp: () -> Void) -> Never {
    ids.withLock { ids in
      for id in ids { kill(id, SIGTERM) }
      for id in ids { end(id) }
      cleanUp()
      _exit(status.rawValue)
    }
  }

  /// Waits for a child process that received SIGTERM, and kills it after two seconds.
  private static func end(_ id: pid_t) {
    var status: Int32 = 0
    for _ in 0..<200 {
      if unsafe waitpid(id, &status, WNOHANG) != 0 { return }
      usleep(10_000)
    }
    kill(id, SIGKILL)
    _ = wait(id)
  }

  static func wait(_ id: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}
