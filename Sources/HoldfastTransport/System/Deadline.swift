import CBlueZ
import Glibc

/// A moment of the monotonic clock by which something has to be done.
public struct Deadline: Sendable, Comparable {
  /// Nanoseconds of `CLOCK_MONOTONIC`, whose epoch is the start of the machine.
  private let nanoseconds: Int64

  /// The moment that never comes.
  public static let never = Deadline(nanoseconds: .max)

  private init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The moment `milliseconds` from now: at once where that is zero or less, never where it is out of range.
  public init(afterMilliseconds milliseconds: Int) {
    let (delay, delayOverflows) = Int64(max(milliseconds, 0)).multipliedReportingOverflow(by: 1_000_000)
    let (moment, momentOverflows) = Deadline.nowNanoseconds().addingReportingOverflow(delay)
    nanoseconds = delayOverflows || momentOverflows ? .max : moment
  }

  /// Milliseconds until the moment, rounded up; 0 once it is over, `Int.max` where it never comes.
  public var remainingMilliseconds: Int {
    guard self != .never else { return .max }
    let remaining = nanoseconds - Deadline.nowNanoseconds()
    return remaining <= 0 ? 0 : Int((remaining - 1) / 1_000_000) + 1
  }

  /// Whether the moment is over.
  public var hasPassed: Bool {
    remainingMilliseconds == 0
  }

  /// Whether `left` comes first.
  public static func < (left: Deadline, right: Deadline) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Source: clock_gettime(2), which cannot fail for this clock.
  private static func nowNanoseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// Something that a blocked thread can be woken by, from any other thread: a count in the kernel that poll(2) can watch.
///
/// A socket pair rather than eventfd(2), which the module of the C library leaves out. Each raise is one byte.
final class Signal: Sendable {
  /// Ready to read while the count is above zero.
  let watched: OpenFile
  private let raisingEnd: OpenFile

  init() throws(TransportError) {
    (watched, raisingEnd) = try OpenFile.socketPair(framing: .stream)
  }

  /// Adds one. A single send(2), without lock or allocation: fit for a signal handler.
  func raise() {
    var byte: UInt8 = 1
    // Where it fails the buffer is full, and then whoever waits is awake already.
    while unsafe send(raisingEnd.descriptor, &byte, 1, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)) < 0 && errno == EINTR {}
  }

  /// Takes one, where there is one, and says whether it did.
  func lower() -> Bool {
    var byte: UInt8 = 0
    while true {
      let count = unsafe recv(watched.descriptor, &byte, 1, CInt(MSG_DONTWAIT))
      if count >= 0 || errno != EINTR { return count > 0 }
    }
  }
}
