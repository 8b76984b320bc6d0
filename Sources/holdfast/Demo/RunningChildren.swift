import Glibc
import Synchronization

/// The processes that this one has started and not yet reaped, so that none outlives it.
enum RunningChildren {
  private static let ids = Mutex<[pid_t]>([])

  /// Starts one; `spawn` says its id.
  static func start(_ spawn: () throws(Failure) -> pid_t) throws(Failure) -> pid_t {
    try ids.withLock { (ids) throws(Failure) in
      let id = try spawn()
      ids.append(id)
      return id
    }
  }

  /// Waits until it ends and gives its id back; its status as waitpid(2) has it.
  static func reap(_ id: pid_t) -> Int32 {
    var information = unsafe siginfo_t()
    // Its id stays its own until it leaves the list.
    while unsafe waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    return ids.withLock { ids in
      ids.removeAll { $0 == id }
      return wait(id)
    }
  }

  /// Ends all of them, then runs `cleanUp` and ends this process. Whoever starts or reaps one meanwhile waits for ever.
  static func endAll(thenExit status: ExitStatus, _ cleanUp: () -> Void) -> Never {
    ids.withLock { ids in
      for id in ids { kill(id, SIGTERM) }
      for id in ids { end(id) }
      cleanUp()
      _exit(status.rawValue)
    }
  }

  /// Waits for one that was told to end, and makes it after two seconds.
  private static func end(_ id: pid_t) {
    var status: Int32 = 0
    for _ in 0..<200 {
      if unsafe waitpid(id, &status, WNOHANG) != 0 { return }
      usleep(10_000)
    }
    kill(id, SIGKILL)
    _ = wait(id)
  }

  static func wait(_ id: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}
