import Glibc

/// A count in the kernel that wakes every thread that waits for it, so that a wait for it and a wait for a peer can be one poll(2).
///
/// A pipe, rather than eventfd(2), which the module of the C library leaves out: each raise is one byte in it.
package final class WakeUp: Sendable {
  /// Ready to read while the count is above zero.
  package let descriptor: Int32
  private let writeEnd: Int32

  /// Makes a count of zero.
  ///
  /// - Throws: `EMFILE` or `ENFILE` where there are no descriptors left.
  package init() throws(SystemError) {
    var ends: InlineArray<2, Int32> = [-1, -1]
    var span = ends.mutableSpan
    try retrying { unsafe span.withUnsafeMutableBufferPointer { unsafe pipe($0.baseAddress!) } }
    (descriptor, writeEnd) = (ends[0], ends[1])
    for end in [descriptor, writeEnd] {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
  }

  deinit {
    close(descriptor)
    close(writeEnd)
  }

  /// Adds one. A single write(2), without lock or allocation: fit for a signal handler.
  package func raise() {
    var byte: UInt8 = 1
    // Where it fails, the pipe is full, and every thread that waits is awake.
    while unsafe write(writeEnd, &byte, 1) < 0 && errno == EINTR {}
  }

  /// Takes one where the count is above zero, and returns whether it did.
  package func lower() -> Bool {
    var byte: UInt8 = 0
    while true {
      let count = unsafe read(descriptor, &byte, 1)
      if count >= 0 || errno != EINTR { return count > 0 }
    }
  }

  /// Whether the count is above zero.
  package var isRaised: Bool { wait(milliseconds: 0) }

  /// Waits until the count is above zero, without taking from it, and returns whether it is.
  ///
  /// - Parameter milliseconds: the longest wait; nil for one without end.
  @discardableResult
  package func wait(milliseconds: UInt64?) -> Bool {
    wait(until: milliseconds.map { Deadline(afterMilliseconds: Int(clamping: $0)) } ?? .never)
  }

  /// Waits until the count is above zero, without taking from it, and returns whether it is; false once `deadline` has passed.
  package func wait(until deadline: Deadline) -> Bool {
    while true {
      var waited = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
      // The longest wait that fits is 24 days: a longer one is several of them.
      let ready = unsafe poll(&waited, 1, CInt(clamping: deadline.remainingMilliseconds))
      if ready > 0 { return true }
      if ready == 0 && deadline.hasPassed { return false }
    }
  }
}
