import Glibc
import HoldfastLinux
import Synchronization
import Testing

@Suite struct ThreadTests {
  private final class Log: Sendable {
    let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  @Test func `join waits for the end, and once more is nothing`() throws {
    let (log, gate) = (Log(), try WakeUp())
    let thread = try Thread {
      gate.wait(milliseconds: nil)
      log.add("worked")
    }
    log.add("started")
    gate.raise()
    thread.join()
    thread.join()
    #expect(log.lines.withLock { $0 } == ["started", "worked"])
  }

  @Test func `a thread that its owner releases has ended by then`() throws {
    let log = Log()
    do {
      let thread = try Thread { log.add("worked") }
      withExtendedLifetime(thread) {}
    }
    #expect(log.lines.withLock { $0 } == ["worked"])
  }

  @Test func `a detached thread runs without an owner`() throws {
    let done = try WakeUp()
    #expect(Thread.detach { done.raise() })
    #expect(done.wait(milliseconds: nil))
  }

  @Test func `a stack that is too small for any thread is refused with its errno`() {
    #expect(throws: SystemError(EINVAL)) { _ = try Thread(stackByteCount: 1) {} }
  }
}
