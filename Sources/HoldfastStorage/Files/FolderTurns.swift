import Glibc

/// Lets the processes that use a folder take turns, by a lock on the folder itself: no file that could be removed.
///
/// Also apart from other values of this type in the same process; not for two threads with the same value.
public final class FolderTurns: Sendable {
  private let directory: Descriptor

  /// - Throws: `notFound`, `notDirectory`, `noPermission`, `other`.
  public init(directory path: String) throws(FileError) {
    do { directory = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY) } catch {
      throw FileError(error, at: path)
    }
  }

  /// Runs `body` once nobody else is in a turn.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: How long to wait for the others, one of which may stand still.
  ///   - failure: What is thrown where that was not enough, or the system refused.
  @discardableResult
  public func take<Result, Failure: Error>(
    timeoutMilliseconds: Int = 10_000, orThrow failure: Failure, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var triesLeft = timeoutMilliseconds
    while flock(directory.number, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR, triesLeft > 0 else { throw failure }
      triesLeft -= 1
      usleep(1000)
    }
    defer { _ = flock(directory.number, LOCK_UN) }
    return try body()
  }
}
