import CBlueZ
import Glibc

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
