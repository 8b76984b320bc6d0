import Glibc

/// What a wait ended with.
enum WaitOutcome {
  /// The file is ready, or has an error or hang-up to report.
  case ready
  case timedOut
  /// The signal was raised first.
  case interrupted
}

extension OpenFile {
  /// poll(2)'s POLLRDHUP, which the module of the C library leaves out.
  private static let peerHasClosed: CShort = 0x2000

  /// Waits for `events` of poll(2) until `deadline`, or until `signal` is raised.
  func wait(for events: CInt, until deadline: Deadline, unless signal: Signal?) throws(TransportError) -> WaitOutcome {
    // poll(2) skips an entry with a negative descriptor.
    var entries: InlineArray<2, pollfd> = [
      pollfd(fd: signal?.watched.descriptor ?? -1, events: CShort(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: CShort(events), revents: 0),
    ]
    guard try poll(&entries, until: deadline) else { return .timedOut }
    return entries[0].revents != 0 ? .interrupted : .ready
  }

  /// Whether the other end is gone, as far as the kernel knows now.
  func isHungUp() throws(TransportError) -> Bool {
    var entries: InlineArray<1, pollfd> = [pollfd(fd: descriptor, events: OpenFile.peerHasClosed, revents: 0)]
    return try poll(&entries, until: Deadline(afterMilliseconds: 0))
      && entries[0].revents & (CShort(POLLHUP) | CShort(POLLERR) | OpenFile.peerHasClosed) != 0
  }
}

/// Lets `milliseconds` pass before something is tried again.
func pause(milliseconds: Int) throws(TransportError) {
  var entries: InlineArray<0, pollfd> = []
  _ = try poll(&entries, until: Deadline(afterMilliseconds: milliseconds))
}

/// Source: poll(2), begun again after each signal of the process. Returns false once `deadline` has passed.
func poll<let count: Int>(
  _ entries: inout InlineArray<count, pollfd>, until deadline: Deadline
) throws(TransportError) -> Bool {
  while true {
    // The longest wait that fits is 24 days: a longer one is several of them.
    let timeoutMilliseconds = CInt(clamping: deadline.remainingMilliseconds)
    var span = entries.mutableSpan
    let readyCount = unsafe span.withUnsafeMutableBufferPointer { entries in
      unsafe Glibc.poll(entries.baseAddress, nfds_t(entries.count), timeoutMilliseconds)
    }
    if readyCount > 0 { return true }
    if readyCount < 0 && errno != EINTR { throw TransportError(errno: errno) }
    if readyCount == 0 && deadline.hasPassed { return false }
  }
}
