import Glibc

/// Raised once; every thread that waits for it then goes on.
///
/// A pipe that holds a byte once raised, so that a wait for it and a wait for a peer can be one poll(2).
final class StopFlag: Sendable {
  /// Readable once the flag is raised.
  let descriptor: CInt
  private let writeDescriptor: CInt

  /// nil when the process has no descriptors left.
  init?() {
    var ends: (CInt, CInt) = (-1, -1)
    let result = unsafe withUnsafeMutableBytes(of: &ends) {
      unsafe pipe($0.baseAddress!.assumingMemoryBound(to: CInt.self))
    }
    guard result == 0 else { return nil }
    (descriptor, writeDescriptor) = ends
    for end in [descriptor, writeDescriptor] {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
  }

  deinit {
    close(descriptor)
    close(writeDescriptor)
  }

  /// Raises it; more than once is as good as once.
  func raise() {
    var byte: UInt8 = 1
    _ = unsafe write(writeDescriptor, &byte, 1)
  }

  var isRaised: Bool {
    wait(milliseconds: 0)
  }

  /// Waits until it is raised, at most so long, or without end for nil; says whether it is.
  @discardableResult
  func wait(milliseconds: UInt64?) -> Bool {
    let deadline = milliseconds.map { monotonicMilliseconds() + $0 }
    while true {
      let left = deadline.map { deadline in
        let now = monotonicMilliseconds()
        return now < deadline ? deadline - now : 0
      }
      var waited = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
      let ready = unsafe poll(&waited, 1, left.map { CInt(min($0, 1 << 30)) } ?? -1)
      if ready > 0 { return true }
      if ready == 0 && left == 0 { return false }
    }
  }

  private func monotonicMilliseconds() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
  }
}

/// Runs `body` on a thread of its own with a stack of `stackByteCount`; says whether there could be one.
///
/// A connection waits for its peer: on Swift's cooperative pool it would hold one of a handful of threads.
func startThread(stackByteCount: Int = 512 * 1024, _ body: @escaping @Sendable () -> Void) -> Bool {
  var attributes = pthread_attr_t()
  guard unsafe pthread_attr_init(&attributes) == 0 else { return false }
  defer { unsafe pthread_attr_destroy(&attributes) }
  guard unsafe pthread_attr_setstacksize(&attributes, stackByteCount) == 0,
    unsafe pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED)) == 0
  else { return false }
  let work = unsafe Unmanaged.passRetained(ThreadBody(body))
  var thread = pthread_t()
  let result = unsafe pthread_create(
    &thread, &attributes,
    { argument in
      let work = unsafe Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
      work.run()
      return nil
    }, work.toOpaque())
  if result != 0 { unsafe work.release() }
  return result == 0
}

private final class ThreadBody: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) {
    self.run = run
  }
}
