import Glibc
import HoldfastLinux

/// SIGTERM and SIGINT, waited for on a thread of its own instead of interrupting whatever runs.
enum TerminationSignals {
  /// Holds both signals back in this thread and in those that it starts. Call it first.
  static func hold() {
    var set = signalSet()
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for one of them on a new thread, then calls `body` there. A second one ends the process at once.
  static func whenRaised(_ body: @escaping @Sendable () -> Void) {
    Thread.detach {
      var set = signalSet()
      var number: Int32 = 0
      unsafe sigwait(&set, &number)
      body()
      unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
      while true { pause() }
    }
  }

  private static func signalSet() -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, SIGTERM)
    unsafe sigaddset(&set, SIGINT)
    return set
  }
}
