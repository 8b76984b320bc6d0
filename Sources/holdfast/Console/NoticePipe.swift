import Glibc
import HoldfastText

/// Lines for standard error that peers cause: whoever writes one never waits for whoever reads them.
///
/// A pipe keeps them, and a thread of its own carries them on. A line that finds the pipe full is lost: it would be 64 KiB
/// that nobody reads. poll(2) alone would not do, since a terminal that takes ten bytes is ready, and then holds up the
/// writer of eleven.
final class NoticePipe: Sendable {
  private let writeEnd: CInt
  /// Readable once the thread is done.
  private let done: CInt

  /// nil when the process has no descriptors left.
  init?() {
    guard let lines = NoticePipe.makePipe() else { return nil }
    guard let done = NoticePipe.makePipe() else {
      close(lines.read)
      close(lines.write)
      return nil
    }
    _ = fcntl(lines.write, F_SETFL, O_NONBLOCK)
    (writeEnd, self.done) = (lines.write, done.read)
    BackgroundThread.start {
      NoticePipe.carry(from: lines.read, to: STDERR_FILENO)
      close(lines.read)
      close(done.write)
    }
  }

  /// Adds a line, from any thread. pipe(7): at most 4096 bytes are written as a whole or not at all.
  func note(_ text: String) {
    let line = Array("holdfast: \(text.printable)\n".utf8.prefix(4096))
    _ = unsafe write(writeEnd, line, line.count)
  }

  /// Ends it, once, after the last line: waits until all were carried on, at most so long.
  func finish(withinMilliseconds milliseconds: CInt) {
    close(writeEnd)
    var waited = pollfd(fd: done, events: CShort(POLLIN), revents: 0)
    _ = unsafe poll(&waited, 1, milliseconds)
  }

  private static func carry(from source: CInt, to target: CInt) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe read(source, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      // A reader that is gone loses its lines, and the pipe goes on being emptied.
      _ = Console.write(buffer[..<count], to: target)
    }
  }

  private static func makePipe() -> (read: CInt, write: CInt)? {
    var ends: (CInt, CInt) = (-1, -1)
    let result = unsafe withUnsafeMutableBytes(of: &ends) {
      unsafe pipe($0.baseAddress!.assumingMemoryBound(to: CInt.self))
    }
    guard result == 0 else { return nil }
    for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends.0, ends.1)
  }
}
