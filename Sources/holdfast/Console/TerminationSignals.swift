import Glibc
import HoldfastLinux

/// The signals SIGTERM and SIGINT, handled on a separate thread instead of interrupting other code.
enum TerminationSignals {
  /// Blocks both signals in this thread and in those that it starts later. Call it first.
  static func hold() {
    var set = signalSet()
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for one of the signals on a new thread, then calls `body` there. A second signal ends the process at once.
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
