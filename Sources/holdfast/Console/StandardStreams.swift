import Glibc

/// The three streams that a process is started with, made safe whatever they are.
enum StandardStreams {
  /// Call it before anything is opened.
  ///
  /// A stream that the caller closed would give its number to the next file that is opened, a ledger perhaps, and texts
  /// would be written there. It becomes one that refuses to be used. A reader that is gone, or
  /// a file that may not grow, is an error like any other, and not a signal.
  static func prepare() {
    for (stream, uselessMode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(stream, F_GETFD) < 0 {
      _ = unsafe open("/dev/null", uselessMode)
    }
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }
}
