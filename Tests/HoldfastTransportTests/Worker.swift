import Glibc
import HoldfastLinux
import Synchronization
import TestSupport
import Testing

import HoldfastTransport

/// Work on a thread of its own: what blocks has no place among the few threads of Swift's tasks.
final class Worker<Value: Sendable>: Sendable {
  private let outcome = Mutex<Result<Value, any Error>?>(nil)
  private let thread = Mutex<pthread_t>(0)
  /// The folder of the thread below `/proc`, once it runs.
  private let folder = Mutex<String?>(nil)

  init(_ work: @escaping @Sendable () throws -> Value) throws {
    let body = Body { [self] in
      folder.withLock { $0 = currentThreadFolder() }
      let result = Result { try work() }
      outcome.withLock { $0 = result }
    }
    var created: pthread_t = 0
    let argument = unsafe Unmanaged.passRetained(body).toOpaque()
    let code = unsafe pthread_create(
      &created, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, argument)
    try #require(code == 0)
    let started = created
    thread.withLock { $0 = started }
  }

  /// Waits until the thread sleeps in the kernel: in the tests, until it waits for what will not come by itself.
  func waitUntilBlocked() throws {
    let deadline = Deadline(afterMilliseconds: generousMilliseconds)
    while !deadline.hasPassed {
      if let folder = folder.withLock({ $0 }), try isAsleep(threadFolder: folder) { return }
      sched_yield()
    }
    Issue.record("the thread does not block")
  }

  /// Sends a signal of the process to the thread.
  func interrupt(with signalNumber: CInt) throws {
    let code = pthread_kill(thread.withLock { $0 }, signalNumber)
    try #require(code == 0)
  }

  /// Waits for the end of the work. Once only.
  func value() throws -> Value {
    let code = pthread_join(thread.withLock { $0 }, nil)
    try #require(code == 0)
    return try #require(outcome.withLock { $0 }).get()
  }
}

private final class Body: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) {
    self.run = run
  }
}

/// Where the kernel tells about this thread.
private func currentThreadFolder() -> String {
  var name = [CChar](repeating: 0, count: 64)
  let count = unsafe readlink("/proc/thread-self", &name, name.count)
  return "/proc/" + String(decoding: name.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Source: proc_pid_stat(5): the state follows the name, which ends with the last parenthesis.
private func isAsleep(threadFolder: String) throws -> Bool {
  let file = OpenFile(taking: try checked(unsafe open(threadFolder + "/stat", O_RDONLY | O_CLOEXEC)))
  var text = [UInt8](repeating: 0, count: 1024)
  let count = unsafe read(file.descriptor, &text, text.count)
  try #require(count > 0)
  let end = try #require(text[..<count].lastIndex(of: UInt8(ascii: ")")))
  return text[end + 2] == UInt8(ascii: "S")
}
