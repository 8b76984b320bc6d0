import Glibc
import Synchronization

/// Lines of a log that peers cause: whoever writes one never waits for whoever reads them.
///
/// A pipe keeps them, and a thread of its own carries them on. A line that finds the pipe full is lost: it would be 64 KiB
/// that nobody reads; how many were lost is the next line. poll(2) alone would not do, since a terminal that takes ten bytes is ready, and then holds up the
/// writer of eleven.
final class NoticePipe: Sendable {
  /// Which standard stream the lines go to.
  enum Target {
    case output, error
  }

  /// pipe(7): up to 4096 bytes, the line's end among them, are written as a whole or not at all.
  static let maximumLineByteCount = 4095

  /// nil once it has ended.
  private let writeEnd: Mutex<CInt?>
  /// Readable once the thread is done.
  private let done: CInt
  private let lostCount = Atomic<Int>(0)

  /// nil when the process has no descriptors left.
  init?(to target: Target) {
    guard let lines = NoticePipe.makePipe() else { return nil }
    guard let done = NoticePipe.makePipe() else {
      close(lines.read)
      close(lines.write)
      return nil
    }
    _ = fcntl(lines.write, F_SETFL, O_NONBLOCK)
    writeEnd = Mutex(lines.write)
    self.done = done.read
    let stream = target == .output ? STDOUT_FILENO : STDERR_FILENO
    BackgroundThread.start {
      NoticePipe.carry(from: lines.read, to: stream)
      close(lines.read)
      close(done.write)
    }
  }

  /// Adds a line, from any thread; nothing after ``finish(withinMilliseconds:)``. A line that is too long is lost as well.
  func add(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    writeEnd.withLock { writeEnd in
      guard let writeEnd else { return }
      let isShort = bytes.count <= NoticePipe.maximumLineByteCount + 1
      let count = isShort ? unsafe write(writeEnd, bytes, bytes.count) : 0
      if count != bytes.count { lostCount.add(1, ordering: .relaxed) }
    }
  }

  /// How many lines were lost since it was asked for last.
  func takeLostCount() -> Int { lostCount.exchange(0, ordering: .relaxed) }

  /// Ends it, once, after the last line: waits until all were carried on, at most so long.
  func finish(withinMilliseconds milliseconds: CInt) {
    writeEnd.withLock { writeEnd in
      if let writeEnd { close(writeEnd) }
      writeEnd = nil
    }
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
